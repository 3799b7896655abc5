"""Files of packet scripts, and where a stack departs from one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from weir._native import PacketScript
from weir.base import bounded
from weir.base.errors import InputError

SUFFIX = ".pkt"

Departure = tuple[Literal["failed", "refused"], int, str]
"""Where a stack departs from a script: the kind, the line and the message."""


@dataclass(frozen=True, slots=True)
class ScriptFile:
    """A script with its path."""

    path: Path
    script: PacketScript


def read(paths: Sequence[Path]) -> list[ScriptFile]:
    """Reads scripts, and all scripts below folders.

    Raises:
        InputError: a file cannot be read or is no script, or there is none.
    """
    found: list[Path] = []
    for path in paths:
        below = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if not below:
            raise InputError(f"{path}: no scripts (*{SUFFIX}) in this folder")
        found += below
    return [_read(path) for path in found]


def _read(path: Path) -> ScriptFile:
    try:
        return ScriptFile(path, PacketScript.parse(bounded.read_text(path)))
    except ValueError as error:
        line, _, message = str(error).removeprefix("line ").partition(": ")
        raise InputError(f"{path}:{line}: {message}") from None
