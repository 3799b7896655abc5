"""A guest kernel: its recipe, build, cache and root file system.

A guest imports this package too, so nothing is imported here.
"""
