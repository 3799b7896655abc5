"""Ten kinds of attacker: generators that send a datagram or open a connection at each step."""

from __future__ import annotations

import random
import socket
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from bench.flood.segments import ACK, SYN, Address, Connection, Segment, emit

NETWORKS = 40
"""Attackers have addresses of this many networks of 127.0.0.0/8."""
_HELLO = struct.Struct("!4sBI")
_HEADER = struct.Struct("!BQ32sB")
_DATAGRAM_FILE = struct.Struct("!BIQ32sB")
_HOARD = 300
"""Connections that an attacker keeps open at a time."""


@dataclass(frozen=True, slots=True)
class Target:
    """A receiver, and what attackers know of it."""

    address: Address
    recorded: tuple[bytes, ...]
    """Datagrams of an honest transfer."""
    known_hash: bytes
    known_size: int
    """Of a file that the receiver has."""

    def hello(self, files: int) -> bytes:
        """The first frame, in the version that honest senders speak."""
        spoken = (at[4] for one in self.recorded if (at := one[one.find(b"WEIR") :])[:4] == b"WEIR")
        return _checked(_HELLO.pack(b"WEIR", next(spoken, 1), files))


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


def _throw(rng: random.Random, target: Target, make: Callable[[], bytes]) -> Iterator[None]:
    """Datagrams from ever new sockets, answers unread."""
    while True:
        with _socket(rng, target) as one:
            for _ in range(50):
                with suppress(OSError):
                    one.send(make())
                yield


def noise(rng: random.Random, target: Target) -> Iterator[None]:
    """Random bytes."""
    return _throw(rng, target, lambda: rng.randbytes(rng.randrange(1, 1_473)))


def unfinished_handshakes(rng: random.Random, target: Target) -> Iterator[None]:
    """SYNs whose answers are not read."""

    def syn() -> bytes:
        ports = (rng.randrange(1 << 16), target.address[1])
        return emit(Segment(*ports, rng.randrange(1 << 32), 0, SYN, bytes(24)))

    return _throw(rng, target, syn)


def false_cookies(rng: random.Random, target: Target) -> Iterator[None]:
    """SYNs with invented cookies."""

    def syn() -> bytes:
        ports = (rng.randrange(1 << 16), target.address[1])
        return emit(Segment(*ports, rng.randrange(1 << 32), 0, SYN, rng.randbytes(24)))

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

    return _throw(rng, target, stray)


def replays(rng: random.Random, target: Target) -> Iterator[None]:
    """Recorded datagrams, as they were and changed."""

    def replay() -> bytes:
        datagram = bytearray(rng.choice(target.recorded))
        if rng.random() < 0.5:
            datagram[rng.randrange(len(datagram))] ^= 1 << rng.randrange(8)
        return bytes(datagram)

    return _throw(rng, target, replay)


def _hoard(rng: random.Random, target: Target, act: Callable[[Connection], None]) -> Iterator[None]:
    """Opens connections and keeps them, the oldest as long as there is space for them."""
    kept: list[Connection] = []
    while True:
        connection = Connection(rng, target.address, host(rng))
        if connection.is_open:
            act(connection)
        kept.append(connection)
        if len(kept) > _HOARD:
            kept.pop(0).close()
        yield


def silent(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections over which nothing is ever said."""
    return _hoard(rng, target, lambda _: None)


def hello_only(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that say hello, send a few bytes far ahead, and fall silent."""

    def act(connection: Connection) -> None:
        connection.say(0, target.hello(1))
        connection.say(900_000, b"far")

    return _hoard(rng, target, act)


def announcers(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that announce hundreds of files that the receiver has to look at or to refuse."""

    def act(connection: Connection) -> None:
        existing = rng.random() < 0.5
        one = _file(1 << 60, bytes(32), b"f")
        if existing:
            one = _file(target.known_size, target.known_hash, b"known")
        frames = target.hello(400) + one * 400
        for start in range(0, len(frames), 1_400):
            connection.say(start, frames[start : start + 1_400])
        connection.hear()

    return _hoard(rng, target, act)


def tiny_datagrams(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that announce large files in datagrams of one byte each, and send some."""

    def act(connection: Connection) -> None:
        size = 8_000_000
        header = _checked(_DATAGRAM_FILE.pack(4, 1, size, rng.randbytes(32), 1) + b"f")
        connection.say(0, target.hello(1) + header)
        for offset in range(0, size, size // 200):
            connection.say_beside(offset, b"x")

    return _hoard(rng, target, act)


def partials(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that begin large files and leave them."""

    def act(connection: Connection) -> None:
        frames = target.hello(1) + _file(50_000_000, rng.randbytes(32), b"f")
        frames += _checked(struct.pack("!BQQ", 2, 0, 65_536))
        connection.say(0, frames + b"x" * 1_000)

    return _hoard(rng, target, act)


def _file(size: int, digest: bytes, name: bytes) -> bytes:
    return _checked(_HEADER.pack(1, size, digest, len(name)) + name)


def _checked(frame: bytes) -> bytes:
    return frame + zlib.crc32(frame).to_bytes(4)


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
        tiny_datagrams,
        partials,
    )
}
