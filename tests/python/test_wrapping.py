"""Nothing in the compiled module lacks a place in the Python package."""

from __future__ import annotations

import re
from pathlib import Path

import weir
from weir import _native


def test_everything_native_is_used_by_the_package() -> None:
    public = [name for name in dir(_native) if not name.startswith("_")]
    assert len(public) >= 5, "the guard must have looked at something"
    sources = [
        path.read_text(encoding="utf-8") for path in Path(weir.__file__).parent.rglob("*.py")
    ]
    assert len(sources) > 10
    used = set(re.findall(r"_native\.(\w+)", "\n".join(sources)))
    for line in re.findall(r"from weir\._native import (.+)", "\n".join(sources)):
        used |= {name.strip() for name in line.strip("()").split(",")}
    used |= {"CaptureTables", "RunResult", "Table", "TcpTransfer"}  # returned, never named
    assert set(public) <= used, f"not wrapped: {set(public) - used}"


def test_the_public_names_exist() -> None:
    assert all(hasattr(weir, name) for name in weir.__all__)
