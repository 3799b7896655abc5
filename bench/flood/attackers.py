"""Thirteen kinds of attacker: generators that send a datagram or open a connection at each step.

An attacker that the receiver turns away because of a wrong form attacks nothing. So each that has
an answer to expect counts the answers that it wants, and those that turn it away. No step waits for
an answer: else a receiver that gives none would slow the attack down.
"""

from __future__ import annotations

import random
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

from bench.flood import frames
from bench.flood.frames import JUDGED, LEAST_PIECE, WELCOME
from bench.flood.segments import ACK, SYN, SYN_OPTIONS, Connection, Segment, emit
from bench.flood.target import Target

_HOARD = 300
"""Connections that an attacker keeps open at a time."""
_PATIENCE_S = 1.0
"""For how long an attacker waits for a connection to open."""
_LOOKS = 2
"""At how many connections an attacker looks in a step, each in turn."""
_MANY = 400
"""Frames of a connection that asks or announces."""
_SCATTERED = 20
"""Datagrams of a connection that sends a file in them. Hundreds fill the receiver's socket, as
those of any kind do: what is to be shown is what each makes the receiver do."""

Kind = Callable[[random.Random, Target], Iterator[None]]


def _socket(rng: random.Random, target: Target) -> socket.socket:
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind((target.host(rng), 0))
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
    """SYNs with invented cookies, which get resets."""

    def syn() -> bytes:
        ports = (rng.randrange(1 << 16), target.address[1])
        return emit(Segment(*ports, rng.randrange(1 << 32), 0, SYN, rng.randbytes(24)), SYN_OPTIONS)

    return _throw(rng, target, syn, "false_cookies")


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
    """Recorded datagrams, as they were and changed: openings get answers, others resets."""

    def replay() -> bytes:
        datagram = bytearray(rng.choice(target.recorded))
        if rng.random() < 0.5:
            datagram[rng.randrange(len(datagram))] ^= 1 << rng.randrange(8)
        return bytes(datagram)

    return _throw(rng, target, replay, "replays")


def _opened(rng: random.Random, target: Target) -> Iterator[list[Connection]]:
    """Begins a connection at each step; yields those that have opened since."""
    begun: deque[Connection] = deque()
    while True:
        begun.append(Connection(rng, target.address, target.host(rng)))
        opened = []
        for _ in range(min(_LOOKS, len(begun))):
            one = begun.popleft()
            one.read()
            if one.is_open:
                opened.append(one)
            elif one.is_over or time.monotonic() - one.began > _PATIENCE_S:
                one.close()
            else:
                begun.append(one)
        yield opened


def _hoard(
    rng: random.Random,
    target: Target,
    act: Callable[[Connection], None],
    kind: str,
    wanted: frozenset[int] | None = WELCOME,
) -> Iterator[None]:
    """Opens connections and keeps them, the oldest as long as there is space for them."""
    kept: deque[Connection] = deque()
    for opened in _opened(rng, target):
        for one in opened:
            act(one)
            kept.append(one)
        for _ in range(min(_LOOKS, len(kept))):
            one = kept.popleft()
            one.read()
            target.hear(kind, one, wanted)
            if one.is_over or len(kept) >= _HOARD:
                one.close()
            else:
                kept.append(one)
        yield


def silent(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections over which nothing is ever said."""
    return _hoard(rng, target, Connection.probe, "silent", None)


def hello_only(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that say hello, send a few bytes far ahead, and fall silent."""

    def act(connection: Connection) -> None:
        connection.say(0, frames.hello(1))
        connection.say(900_000, b"far")

    return _hoard(rng, target, act, "hello_only", None)


def announcers(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that announce hundreds of files that the receiver has to look at or to refuse."""
    known = (target.known_size, target.known_hash, b"known")
    hello = frames.hello(_MANY)
    all_of = [
        hello + b"".join(frames.file(n, *one) for n in range(_MANY))
        for one in (known, (1 << 60, bytes(32), b"f"))
    ]

    def act(connection: Connection) -> None:
        connection.say_all(rng.choice(all_of))

    return _hoard(rng, target, act, "announcers", JUDGED)


def askers(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that ask hundreds of times whether the receiver has a large file."""
    known = (target.known_size, target.known_hash, b"known")
    asked = b"".join(frames.question(n, *known) for n in range(_MANY))
    said = frames.hello(_MANY) + asked
    return _hoard(rng, target, lambda connection: connection.say_all(said), "askers", JUDGED)


def folders(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that make a hundred folders and links."""

    def act(connection: Connection) -> None:
        top = rng.randbytes(4).hex()
        paths = [top, *(f"{top}/{n}" for n in range(100))]
        made = (frames.folder(n, path) for n, path in enumerate(paths))
        linked = (frames.link(101 + n, f"{top}/l{n}", "0") for n in range(100))
        connection.say_all(frames.hello(201) + b"".join(made) + b"".join(linked))

    return _hoard(rng, target, act, "folders", JUDGED)


def tiny_datagrams(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that announce large files in the smallest datagrams, and send some."""

    def act(connection: Connection) -> None:
        size = 8_000_000
        announced = frames.loose(LEAST_PIECE, 0, size, rng.randbytes(32), b"f")
        connection.say(0, frames.hello(1) + announced)
        for n in range(0, size // LEAST_PIECE, size // LEAST_PIECE // _SCATTERED):
            connection.send_datagram(n * LEAST_PIECE, b"x" * LEAST_PIECE)

    return _hoard(rng, target, act, "tiny_datagrams")


def partials(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that begin large files and leave them."""

    def act(connection: Connection) -> None:
        begun = frames.hello(1) + frames.file(0, 50_000_000, rng.randbytes(32), b"f")
        connection.say(0, begun + frames.data(0, 65_536) + b"x" * 1_000)

    return _hoard(rng, target, act, "partials")


def litter(rng: random.Random, target: Target) -> Iterator[None]:
    """Connections that begin a file with one byte, and reset."""
    said: deque[Connection] = deque()
    for opened in _opened(rng, target):
        for one in opened:
            one.say(0, frames.beginning(rng))
            said.append(one)
        for _ in range(min(_LOOKS, len(said))):
            one = said.popleft()
            one.read()
            target.hear("litter", one, WELCOME)
            # Once it was answered there is a file.
            if one.is_counted or one.is_over or time.monotonic() - one.began > _PATIENCE_S:
                one.reset()
                one.close()
            else:
                said.append(one)
        yield


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

UNANSWERED = {"noise"}
"""Random bytes get no answer by design."""
