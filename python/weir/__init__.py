"""Weir: a laboratory for reliable transport and congestion control."""

from weir._native import version

__all__ = ["__version__"]

__version__ = version()
