"""`steps`: links that change or fail during a run, and how fast each congestion control follows."""
