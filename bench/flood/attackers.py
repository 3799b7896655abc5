"""Thirteen kinds of attacker: generators that send a datagram or open a connection at each step.

An attacker that the receiver turns away because of a wrong form attacks nothing. So each that has
an answer to expect counts the answers that it wants, and those that turn it away.
"""

from __future__ import annotations

import random
import socket
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from bench.flood.segments import (
    ACK,
    SYN,
    SYN_OPTIONS,
    Address,
    Connection,
    Segment,
    emit,
)

NETWORKS = 40
"""Attackers have addresses of this many networks of 127.0.0.0/8."""
_HELLO = struct.Struct("!4sBI")
VERSION = 3
"""Of the file protocol (docs/transfer.md): a sender of another one is turned away."""
_HEADER = struct.Struct("!IQ32sHqIH")
"""Number, size, hash, permissions, time, and length of the name."""
_ENTRY = struct.Struct("!BIHqIH")
_LEAST_PIECE = 64
"""A receiver refuses shorter datagrams."""
_HOARD = 300
"""Connections that an attacker keeps open at a time."""
_HAVE, _KEPT, _ALREADY, _REFUSED, _WORKING, _WAIT, _WANTED = 16, 17, 18, 20, 22, 25, 27
WELCOME = frozenset({_HAVE, _WAIT})
_JUDGED = WELCOME | {_KEPT, _ALREADY, _REFUSED, _WORKING, _WANTED}
"""First bytes of a receiver's frames to a sender in form (docs/transfer.md, "Protocol")."""


@dataclass(frozen=True, slots=True)
class Target:
    """A receiver, and what attackers know of it."""

    address: Address
    recorded: tuple[bytes, ...]
    """Datagrams of an honest transfer."""
    known_hash: bytes
    known_size: int
    """Of a file that the receiver has."""
    heard: Counter[str] = field(default_factory=Counter)
    """By kind of attacker: how often the receiver has answered as it does to senders in form,"""
    turned_away: Counter[str] = field(default_factory=Counter)
    """and how often it has turned one away."""

    def hear(self, kind: str, connection: Connection, wanted: frozenset[int]) -> None:
        """Counts the receiver's first answer on a connection, if there is one yet."""
        answer = connection.first_answer()
        if answer is not None:
            (self.heard if answer in wanted else self.turned_away)[kind] += 1

    def hello(self, files: int) -> bytes:
        """The first frame, in the version that honest senders speak."""
        spoken = {at[4] for one in self.recorded if (at := one[one.find(b"WEIR") :])[:4] == b"WEIR"}
        if spoken - {VERSION}:
            raise RuntimeError(f"honest senders speak version {spoken}, attackers {VERSION}")
        return _checked(_HELLO.pack(b"WEIR", VERSION, files))


Kind = Callable[[random.Random, Target], Iterator[None]]


def host(rng: random.Random) -> str:
    """An address of an attacker."""
    return f"127.{1 + rng.randrange(NETWORKS)}.0.{1 + rng.randrange(254)}"


def _socket(rng: random.Random, target: Target) -> socket.socket:
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind((host(rng), 0))
    one.connect(target.address)
    one.setblocking(False)
    return one


def _throw(
    rng: random.Random, target: Target, make: Callable[[], bytes], kind: str = ""
) -> Iterator[None]:
    """Datagrams from ever new sockets. Of a kind that expects answers those are counted."""
    before: socket.socket | None = None
    while True:
        one = _socket(rng, target)
        for _ in range(50):
            with suppress(OSError):
                one.send(make())
            yield
        if before is not None:
            # Its answers have had the time of another 50 datagrams.
            with suppress(OSError):
                while kind and before.recv(2_048):
                    target.heard[kind] += 1
            before.close()
        before = one


def noise(rng: random.Random, target: Target) -> Iterator[None]:
    """Random bytes."""
    return _throw(rng, target, lambda: rng.randbytes(rng.randrange(1, 1_473)))


def unfinished_handshakes(rng: random.Random, target: Target) -> Iterator[None]:
    """SYNs with a sender's options, which get answers; these begin nothing."""

    def syn() -> bytes:
        ports = (rng.randrange(1 << 16), target.address[1])
        return emit(Segment(*ports, rng.randrange(1 << 32), 0, SYN, bytes(24)), SYN_OPTIONS)

    return _throw(rng, target, syn, "unfinished_handshakes")


def false_cookies(rng: random.Random, target: Target) -> Iterator[None]:
    """SYNs with invented cookies."""

    def syn() -> bytes:
        ports = (rng.randrange(1 << 16), target.address[1])
        return emit(Segment(*ports, rng.randrange(1 << 32), 0, SYN, rng.randbytes(24)), SYN_OPTIONS)

    return _throw(rng, target, syn)


def unmatched_segments(rng: random.Random, target: Target) -> Iterator[None]:
    """Segments of connections that do not exist, in clear or as if sealed."""

    def stray() -> bytes:
        ports = (rng.randrange(1 << 16), target.address[1])
        if rng.random() < 0.5:
            return struct.pack("!HHQ", *ports, rng.randrange(1 << 40)) + rng.randbytes(100)
        return emit(
            Segment(*ports, rng.randrange(1 << 32), rng.randrange(1 << 32), ACK, b"x" * 100)
        )

    return _throw(rng, target, stray, "unmatched_segments")


def replays(rng: random.Random, target: Target) -> Iterator[None]:
    """Recorded datagrams, as they were and changed."""

    def replay() -> bytes:
        datagram = bytearray(rng.choice(target.recorded))
        if rng.random() < 0.5:
            datagram[rng.randrange(len(datagram))] ^= 1 << rng.randrange(8)
        return bytes(datagram)

    return _throw(rng, target, replay)


def _hoard(
    rng: random.Random,
    target: Target,
    act: Callable[[Connection], None],
    kind: str,
    wanted: frozenset[int] | None = WELCOME,
) -> Iterator[None]:
    """Opens connections and keeps them, the oldest as long as there is space for them.

    Where no answer is `wanted`, the connection is all that the receiver grants.
    """
    kept: list[Connection] = []
    while True:
        connection = Connection(rng, target.address, host(rng))
        if connection.is_open:
            act(connection)
            if wanted is None:
                target.heard[kind] += 1
        kept.append(connection)
        if len(kept) > _HOARD:
            oldest = kept.pop(0)
            if wanted is not None:
                target.hear(kind, oldest, wanted)
            oldest.close()
        yield


def silent(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections over which nothing is ever said."""
    return _hoard(rng, target, lambda _: None, "silent", None)


def hello_only(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that say hello, send a few bytes far ahead, and fall silent."""

    def act(connection: Connection) -> None:
        connection.say(0, target.hello(1))
        connection.say(900_000, b"far")

    return _hoard(rng, target, act, "hello_only", None)


def announcers(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that announce hundreds of files that the receiver has to look at or to refuse."""

    def act(connection: Connection) -> None:
        existing = rng.random() < 0.5
        one = (target.known_size, target.known_hash, b"known")
        if not existing:
            one = (1 << 60, bytes(32), b"f")
        _say_all(connection, target.hello(400) + b"".join(_file(n, *one) for n in range(400)))

    return _hoard(rng, target, act, "announcers", _JUDGED)


def askers(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that ask hundreds of times whether the receiver has a large file."""

    def act(connection: Connection) -> None:
        one = (target.known_size, target.known_hash, b"known")
        asked = (_checked(b"\x08" + _header(n, *one)) for n in range(400))
        _say_all(connection, target.hello(400) + b"".join(asked))

    return _hoard(rng, target, act, "askers", _JUDGED)


def folders(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that make a hundred folders and links."""

    def act(connection: Connection) -> None:
        top = rng.randbytes(4).hex()
        paths = [top, *(f"{top}/{n}" for n in range(100))]
        made = (_checked(_entry(9, n, path)) for n, path in enumerate(paths))
        linked = (_checked(_entry(11, 101 + n, f"{top}/l{n}", "0")) for n in range(100))
        _say_all(connection, target.hello(201) + b"".join(made) + b"".join(linked))

    return _hoard(rng, target, act, "folders", _JUDGED)


def _say_all(connection: Connection, frames: bytes) -> None:
    for start in range(0, len(frames), 1_400):
        connection.say(start, frames[start : start + 1_400])
    connection.hear()


def tiny_datagrams(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that announce large files in the smallest datagrams, and send some."""

    def act(connection: Connection) -> None:
        size = 8_000_000
        announced = struct.pack("!BI", 4, _LEAST_PIECE) + _header(0, size, rng.randbytes(32), b"f")
        header = _checked(announced)
        connection.say(0, target.hello(1) + header)
        for n in range(0, size // _LEAST_PIECE, 600):
            connection.send_datagram(n * _LEAST_PIECE, b"x" * _LEAST_PIECE)

    return _hoard(rng, target, act, "tiny_datagrams")


def partials(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that begin large files and leave them."""

    def act(connection: Connection) -> None:
        frames = target.hello(1) + _file(0, 50_000_000, rng.randbytes(32), b"f")
        frames += _checked(struct.pack("!BQQ", 2, 0, 65_536))
        connection.say(0, frames + b"x" * 1_000)

    return _hoard(rng, target, act, "partials")


def litter(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that begin a file with one byte, and reset."""
    while True:
        connection = Connection(rng, target.address, host(rng))
        if connection.is_open:
            connection.say(0, beginning(rng, target))
            yield
            target.hear("litter", connection, WELCOME)
            connection.reset()
        connection.close()
        yield


def beginning(rng: random.Random, target: Target) -> bytes:
    """The announcement of a large file and its first byte; more bytes may follow it."""
    size = 50_000_000
    frames = target.hello(1) + _file(0, size, rng.randbytes(32), b"f")
    return frames + _checked(struct.pack("!BQQ", 2, 0, size)) + b"x"


def _file(number: int, size: int, digest: bytes, name: bytes) -> bytes:
    return _checked(b"\x01" + _header(number, size, digest, name))


def _header(number: int, size: int, digest: bytes, name: bytes) -> bytes:
    return _HEADER.pack(number, size, digest, 0o644, 0, 0, len(name)) + name


def _entry(kind: int, number: int, path: str, target: str = "") -> bytes:
    texts = _ENTRY.pack(kind, number, 0o755, 0, 0, len(path)) + path.encode()
    return texts + (struct.pack("!H", len(target)) + target.encode() if target else b"")


def _checked(frame: bytes) -> bytes:
    return frame + zlib.crc32(frame).to_bytes(4)


ANSWERED = {
    "unfinished_handshakes",
    "unmatched_segments",
    "silent",
    "hello_only",
    "announcers",
    "askers",
    "folders",
    "tiny_datagrams",
    "partials",
    "litter",
}
"""Kinds to which a receiver answers, or opens a connection. The others get no answer by design."""

KINDS: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        noise,
        unfinished_handshakes,
        false_cookies,
        unmatched_segments,
        replays,
        silent,
        hello_only,
        announcers,
        askers,
        folders,
        tiny_datagrams,
        partials,
        litter,
    )
}
