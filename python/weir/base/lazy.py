"""Names of a package whose modules are loaded when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package (PEP 562), for names by the module that has them."""
    own = vars(sys.modules[package])

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        own[name] = getattr(import_module(homes[name]), name)
        return own[name]

    return get, lambda: sorted({*own, *homes})
