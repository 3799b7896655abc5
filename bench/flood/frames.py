"""Frames of a sender as an attacker makes them, in the form of docs/transfer.md."""

from __future__ import annotations

import random
import struct
import zlib

VERSION = 3
"""Of the file protocol: a sender of another one is turned away."""
LEAST_PIECE = 64
"""A receiver refuses shorter datagrams."""
HAVE, KEPT, ALREADY, REFUSED, FAILED = 16, 17, 18, 20, 21
WORKING, BROKEN, WAIT, WANTED = 22, 24, 25, 27
"""First bytes of a receiver's frames."""
_NO_MEMORY = b"no memory"
"""In the reason of a receiver that ends a session for another cause than its form."""
WELCOME = frozenset({HAVE, WAIT})
JUDGED = WELCOME | {KEPT, ALREADY, REFUSED, WORKING, WANTED}

_HELLO = struct.Struct("!4sBI")
_HEADER = struct.Struct("!IQ32sHqIH")
"""Number, size, hash, permissions, time, and length of the name."""
_ENTRY = struct.Struct("!BIHqIH")


def hello(files: int) -> bytes:
    """The first frame."""
    return checked(_HELLO.pack(b"WEIR", VERSION, files))


def spoken(datagrams: tuple[bytes, ...]) -> set[int]:
    """The versions that the senders of recorded datagrams speak."""
    return {at[4] for one in datagrams if (at := one[one.find(b"WEIR") :])[:4] == b"WEIR"}


def is_refusal(answer: bytes) -> bool:
    """Whether a receiver has ended a session because of the form of what it was sent."""
    return answer[:1] in (bytes([FAILED]), bytes([BROKEN])) and _NO_MEMORY not in answer


def file(number: int, size: int, digest: bytes, name: bytes) -> bytes:
    """Announces a file."""
    return checked(b"\x01" + header(number, size, digest, name))


def question(number: int, size: int, digest: bytes, name: bytes) -> bytes:
    """Asks whether a file is there."""
    return checked(b"\x08" + header(number, size, digest, name))


def loose(piece: int, number: int, size: int, digest: bytes, name: bytes) -> bytes:
    """Announces a file that comes in datagrams of `piece` bytes."""
    return checked(struct.pack("!BI", 4, piece) + header(number, size, digest, name))


def data(offset: int, length: int) -> bytes:
    """Announces a piece of the last file."""
    return checked(struct.pack("!BQQ", 2, offset, length))


def folder(number: int, path: str) -> bytes:
    """A folder."""
    return checked(_entry(9, number, path))


def link(number: int, path: str, target: str) -> bytes:
    """A symbolic link."""
    return checked(_entry(11, number, path) + struct.pack("!H", len(target)) + target.encode())


def beginning(rng: random.Random) -> bytes:
    """The announcement of a large file and its first byte; more bytes may follow it."""
    size = 50_000_000
    return hello(1) + file(0, size, rng.randbytes(32), b"f") + data(0, size) + b"x"


def header(number: int, size: int, digest: bytes, name: bytes) -> bytes:
    """What announcements of files have in common."""
    return _HEADER.pack(number, size, digest, 0o644, 0, 0, len(name)) + name


def checked(frame: bytes) -> bytes:
    """A frame with its checksum."""
    return frame + zlib.crc32(frame).to_bytes(4)


def _entry(kind: int, number: int, path: str) -> bytes:
    return _ENTRY.pack(kind, number, 0o755, 0, 0, len(path)) + path.encode()
