"""Inputs that are no plain files: standard input, pipes, files compressed by xz.

They are copied into a temporary file first. A qlog is read twice, and the reader of captures does
not undo xz.
"""

from __future__ import annotations

import lzma
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from weir.base.errors import InputError

STDIN = "-"


@dataclass(frozen=True)
class Source:
    """A file to read, and what it is called."""

    name: str
    file: Path
    warning: str = ""
    """Why not all of it could be unpacked."""


@contextmanager
def regular(paths: Sequence[Path]) -> Iterator[list[Source]]:
    """The inputs as files that can be read more than once, until the block ends.

    Raises:
        InputError: one is not there, or is neither a file nor a pipe.
    """
    with ExitStack() as stack:
        yield [_source(path, stack) for path in paths]


def _source(path: Path, stack: ExitStack) -> Source:
    if str(path) == STDIN:
        return _copied("standard input", sys.stdin.buffer, stack)
    if path.is_fifo():
        with path.open("rb") as opened:
            return _copied(str(path), opened, stack)
    if not path.is_file():
        what = "is no regular file" if path.exists() else "is not there"
        raise InputError(
            f"{path}: {what}; give a capture (pcap, pcapng), a qlog or a result directory"
        )
    try:
        with path.open("rb") as opened:
            if opened.read(len(_XZ)) == _XZ:
                opened.seek(0)
                return _unpacked(str(path), opened, stack)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    return Source(str(path), path)


def _copied(name: str, opened: IO[bytes], stack: ExitStack) -> Source:
    """What a pipe has, which may be compressed by xz."""
    scratch = stack.enter_context(_scratch())
    shutil.copyfileobj(opened, scratch)
    scratch.flush()
    scratch.seek(0)
    if scratch.read(len(_XZ)) == _XZ:
        scratch.seek(0)
        return _unpacked(name, scratch, stack)
    return Source(name, Path(scratch.name))


def _scratch() -> tempfile._TemporaryFileWrapper[bytes]:
    return tempfile.NamedTemporaryFile(prefix="weir-read-")


def _unpacked(name: str, opened: IO[bytes], stack: ExitStack) -> Source:
    """What a file of xz has, up to where it is cut or not valid."""
    scratch = stack.enter_context(_scratch())
    warning = ""
    unpacked = 0
    with lzma.LZMAFile(opened) as packed:
        try:
            while part := packed.read(_PART):
                scratch.write(part)
                unpacked += len(part)
                if unpacked > max(_UNPACKED_BYTES, _MOST_TIMES * opened.tell()):
                    raise InputError(
                        f"{name}: it unpacks to over {_UNPACKED_BYTES >> 20} MiB and over "
                        f"{_MOST_TIMES} times its size; if you trust it, unpack it first"
                    )
        except (EOFError, lzma.LZMAError):
            warning = f"{name}: its compressed data ends early or is not valid"
    scratch.flush()
    return Source(name, Path(scratch.name), warning)


_XZ = b"\xfd7zXZ\0"
_PART = 1 << 16
_UNPACKED_BYTES, _MOST_TIMES = 1 << 30, 100
"""What a file may unpack to: a small one could fill the disk."""
