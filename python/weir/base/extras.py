"""Packages that only some uses need: an extra installs them."""

from __future__ import annotations

import importlib
from types import ModuleType

from weir.base.errors import InputError

DISTRIBUTION = "weir-lab"
"""What pip installs."""


def imported(package: str, extra: str, needed_for: str) -> ModuleType:
    """A package of an extra.

    Raises:
        InputError: it is not installed; says how to install it.
    """
    try:
        return importlib.import_module(package)
    except ImportError:
        install = f"pip install '{DISTRIBUTION}[{extra}]'"
        raise InputError(
            f"{needed_for} needs {package}, which is not installed: {install}"
        ) from None


__all__ = ["DISTRIBUTION", "imported"]
