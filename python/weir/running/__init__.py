"""Runs a plan: in threads, guests, other programs or on a cluster."""
