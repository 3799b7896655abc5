"""The loop behind `weir tune`, `weir explain` and `weir search`: ask, run paired seeds, tell."""
