"""`quiche-2370`: quiche before and after the fix of a bug of its CUBIC, in guests."""
