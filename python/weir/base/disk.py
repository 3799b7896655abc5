"""Files that are on disk whole or not at all, also after a power cut, and their checksums.

A rename may reach the disk before the contents of what it renames do. So a file, and every file of
a folder, is synced before it gets its name, and the folder with the name afterwards.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryFile

import polars as pl

from weir.base.errors import StoreError

TEMPORARY = ".partial"
"""The end of the names of what is not complete."""

_PROBE_BYTES = 1 << 20


def write_text(path: Path, text: str) -> None:
    """Writes a text file whole or not at all.

    Raises:
        StoreError: it cannot be written.
    """
    write_bytes(path, (text + "\n").encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all.

    Raises:
        StoreError: it cannot be written.
    """
    temporary = path.with_suffix(TEMPORARY)
    with write_errors(path.parent):
        write_new({temporary: content})
        temporary.replace(path)
        sync(path.parent)


def write_new(contents: Mapping[Path, bytes]) -> None:
    """Writes files of their own: what has their names is removed, also if that is a link elsewhere.

    They are synced when all are written: a file system then commits once, and not once per file.
    """
    for path, content in contents.items():
        path.unlink(missing_ok=True)
        with path.open("xb") as file:
            file.write(content)
    for path in contents:
        sync(path)


def sync(path: Path) -> None:
    """Brings a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turns an error of a write into a StoreError of one line.

    Raises:
        StoreError: something could not be written in `path`.
    """
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        # Polars wraps the system's error in its own text; another write gives the original.
        original = error if isinstance(error, OSError) and error.strerror else _refusal(path)
        reason = original.strerror if original else error
        raise StoreError(f"cannot write results in {path}: {reason}") from error


def _refusal(path: Path) -> OSError | None:
    try:
        with TemporaryFile(dir=path) as file:
            file.write(bytes(_PROBE_BYTES))
    except OSError as error:
        return error
    return None
