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


@dataclass(frozen=True, slots=True)
class Refused:
    """A script that uses what is not understood."""

    path: Path
    line: int
    message: str
    """What that is, and what is allowed."""


def read(paths: Sequence[Path]) -> list[ScriptFile]:
    """Reads scripts, and all scripts below folders.

    Raises:
        InputError: a file cannot be read or is no script, or there is none.
    """
    return [_read(path) for path in _below(paths)]


def read_understood(paths: Sequence[Path]) -> tuple[list[ScriptFile], list[Refused]]:
    """Reads scripts as `read` does, and returns those that are not understood apart.

    Raises:
        InputError: a file cannot be read, or there is none.
    """
    files: list[ScriptFile] = []
    refused: list[Refused] = []
    for path in _below(paths):
        text = bounded.read_text(path)
        try:
            files.append(ScriptFile(path, PacketScript.parse(text)))
        except ValueError as error:
            refused.append(Refused(path, *_located(error)))
    return files, refused


def _below(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        below = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if not below:
            raise InputError(f"{path}: no scripts (*{SUFFIX}) in this folder")
        found += below
    return found


def _read(path: Path) -> ScriptFile:
    try:
        return ScriptFile(path, PacketScript.parse(bounded.read_text(path)))
    except ValueError as error:
        line, message = _located(error)
        raise InputError(f"{path}:{line}: {message}") from None


def _located(error: ValueError) -> tuple[int, str]:
    """Returns the line and the message of the parser."""
    line, _, message = str(error).removeprefix("line ").partition(": ")
    return int(line), message
