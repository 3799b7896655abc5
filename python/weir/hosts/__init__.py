"""Runs of a scenario between hosts, which Weir starts over ssh: `weir run --hosts`."""
