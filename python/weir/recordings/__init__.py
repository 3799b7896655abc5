"""Recorded runs of a kernel's TCP, and how one is repeated."""
