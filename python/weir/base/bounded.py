"""Files that the user or others name: bounded, or refused in one line."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from pathlib import Path
from typing import Any

from weir import _native
from weir.base.errors import InputError

MAX_BYTES = _native.MAX_FILE_BYTES
"""Largest file that is read; the native module has the same limit for files in scenarios."""


def read_bytes(path: Path) -> bytes:
    """The content of a regular file.

    Raises:
        InputError: it is none, too large, or cannot be read.
    """
    try:
        # Before it is opened, because opening a FIFO blocks.
        if not path.is_file():
            what = "not a regular file" if path.exists() else "no such file"
            raise InputError(f"{path}: {what}")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    return _bounded(path, content)


def read_text(path: Path) -> str:
    """The text of a file that the user has named; it may be a pipe, as `<(COMMAND)` of a shell.

    Raises:
        InputError: it is too large, no text in UTF-8, or cannot be read.
    """
    try:
        return text_of(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def text_of(path: Path) -> str:
    """As `read_text`, with the system's own errors.

    Raises:
        InputError: it is too large, or no text in UTF-8.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    try:
        return _bounded(path, content).decode()
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file in UTF-8") from None


def read_json(path: Path) -> Any:
    """The value in a regular file of JSON.

    Raises:
        InputError: the file cannot be read, or holds something else.
    """
    try:
        return json.loads(read_bytes(path), parse_constant=_refuse)
    except RecursionError:
        raise InputError(f"{path}: not JSON: nested too deep") from None
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from None


def read_gzip(path: Path) -> bytes:
    """The content of a regular file, unpacked.

    Raises:
        InputError: the file cannot be read, is damaged or unpacks to too much.
    """
    packed = read_bytes(path)
    try:
        with gzip.open(io.BytesIO(packed)) as file:
            return _bounded(path, file.read(MAX_BYTES + 1))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not gzip: {error}") from None


def _bounded(path: Path, content: bytes) -> bytes:
    if len(content) > MAX_BYTES:
        raise InputError(f"{path}: longer than {MAX_BYTES} bytes, the most that is read")
    return content


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
