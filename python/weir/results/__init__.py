"""A result directory: written, read, joined, and the metrics of its runs."""
