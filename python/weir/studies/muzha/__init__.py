"""`muzha`: TCP Muzha next to what it was compared with, on its authors' radio networks."""
