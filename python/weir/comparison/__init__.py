"""One case compared with another, and the sentence about it."""
