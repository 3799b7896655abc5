"""Loads, probes, counters and channels of a path test."""
