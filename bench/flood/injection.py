"""Injection: what someone can do to transfers who sees the path, and who does not.

All datagrams of a transfer pass a forwarder, which adds forged ones that seem to come from the
other end. On the path it knows the last segment, and so the numbers that a receiver expects. Off
the path it knows the addresses and UDP ports only, and guesses the rest.
"""

from __future__ import annotations

import os
import random
import selectors
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.flood.measure import receiver
from bench.flood.segments import ACK, RST, Address, Segment, emit, options, parse
from weir.transfer import files

_BYTES = 300_000
_FEW = 40_000
"""Of a file whose connections are ended again and again: each brings about 4 kB."""
_FROM = 20
"""Datagrams of a transfer before the first forged one: the handshake is over."""

Forge = Callable[[random.Random, bytes], bytes | None]
"""Makes a datagram from one that was seen, or None."""


@dataclass(frozen=True, slots=True)
class Injected:
    """What came of transfers with forged datagrams."""

    attack: str
    forged: int
    transfers: int
    complete: int
    seconds: float
    """What the transfers took."""
    wrong: int
    """Files under their name with another content than any that was sent."""
    reconnects: int
    """Connections that had to be opened again."""


def on_path_reset(_: random.Random, seen: bytes) -> bytes | None:
    """A reset with the number that is expected next."""
    return _after(seen, RST | ACK, b"")


def on_path_data(rng: random.Random, seen: bytes) -> bytes | None:
    """Other bytes in place of those that come next."""
    return _after(seen, ACK, rng.randbytes(1_000))


def on_path_sealed(rng: random.Random, seen: bytes) -> bytes | None:
    """A sealed datagram with another content or counter."""
    changed = bytearray(seen)
    for _ in range(1 + rng.randrange(4)):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def blind(rng: random.Random, seen: bytes) -> bytes | None:
    """Resets and data with guessed ports and numbers."""
    del seen
    ports = rng.randrange(1 << 16), rng.randrange(1 << 16)
    return _guessed(rng, ports)


def blind_in_ports(rng: random.Random, seen: bytes) -> bytes | None:
    """The same with the right ports of the segment, as if these had been guessed."""
    segment = parse(seen)
    if segment is None:
        return None
    return _guessed(rng, (segment.source, segment.destination))


def _guessed(rng: random.Random, ports: tuple[int, int]) -> bytes:
    flags, payload = rng.choice([(RST, b""), (RST | ACK, b""), (ACK, rng.randbytes(1_000))])
    # Segments without timestamps are dropped where both ends have them (RFC 7323 §3.2).
    times = bytes([1, 1, 8, 10]) + rng.randbytes(8)
    return emit(
        Segment(*ports, rng.randrange(1 << 32), rng.randrange(1 << 32), flags, payload), times
    )


def _after(seen: bytes, flags: int, payload: bytes) -> bytes | None:
    segment = parse(seen)
    if segment is None:
        return None
    following = (segment.seq + len(segment.payload)) & 0xFFFFFFFF
    ports = segment.source, segment.destination
    return emit(Segment(*ports, following, segment.ack, flags, payload), options(seen))


ATTACKS: dict[str, tuple[Forge, bool]] = {
    "on the path, resets": (on_path_reset, False),
    "on the path, data": (on_path_data, False),
    "on the path, with a key": (on_path_sealed, True),
    "blind": (blind, False),
    "blind, right ports": (blind_in_ports, False),
    "blind, with a key": (blind, True),
}
"""Each with whether the transfer has a key."""
HARMFUL = {"on the path, resets", "on the path, data"}
"""These can end a connection: without a key they look like those of the other end. One that ends
none was turned away for its form."""


def measure(attack: str, transfers: int = 10, every: int = 5, seed: int = 1) -> Injected:
    """Transfers with a forged datagram after every few that pass, in both directions."""
    forge, sealed = ATTACKS[attack]
    size = _BYTES
    if attack in HARMFUL:
        transfers, size = min(transfers, 3), _FEW
    rng = random.Random(f"{attack} {seed}")  # noqa: S311
    complete = reconnects = wrong = 0
    with tempfile.TemporaryDirectory(prefix="weir-inject-") as name:
        folder, key = Path(name), Path(name) / "key"
        key.write_text(rng.randbytes(32).hex(), encoding="ascii")
        key.chmod(0o600)
        options = ("--key-file", str(key)) if sealed else ()
        with (
            receiver(folder / "in", *options) as (_, address),
            _path(address, rng, forge, every) as (front, forged),
        ):
            began = time.monotonic()
            for n in range(transfers):
                path = folder / f"file-{n}"
                path.write_bytes(os.urandom(size))
                sent = files.send(
                    [path],
                    f"{front[0]}:{front[1]}",
                    rate="20mbit",
                    max_wait="5s",
                    key_file=key if sealed else None,
                )
                complete += not sent.missing
                reconnects += sent.session["reconnects"]
                there = folder / "in" / path.name
                wrong += there.is_file() and there.read_bytes() != path.read_bytes()
            count, seconds = forged(), time.monotonic() - began
    return Injected(attack, count, transfers, complete, seconds, wrong, reconnects)


def _send_to(front: socket.socket, to: Address, made: bytes) -> None:
    front.sendto(made, to)


@contextmanager
def _path(
    receiving: Address, rng: random.Random, forge: Forge, every: int
) -> Iterator[tuple[Address, Callable[[], int]]]:
    """A forwarder; yields where senders send to, and a function that counts what was forged."""
    front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    front.bind(("127.0.0.1", 0))
    over, counts = threading.Event(), [0]
    backs: dict[Address, socket.socket] = {}
    passed: dict[Address, int] = {}
    selector = selectors.DefaultSelector()
    selector.register(front, selectors.EVENT_READ, None)

    def forward(seen: bytes, of: Address, send: Callable[[bytes], object]) -> None:
        send(seen)
        passed[of] = passed.get(of, 0) + 1
        if passed[of] >= _FROM and passed[of] % every == 0 and (made := forge(rng, seen)):
            send(made)
            counts[0] += 1

    def work() -> None:
        while not over.is_set():
            for key, _ in selector.select(0.1):
                if key.data is None:
                    seen, sender = front.recvfrom(65535)
                    if sender not in backs:
                        backs[sender] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                        backs[sender].connect(receiving)
                        selector.register(backs[sender], selectors.EVENT_READ, sender)
                    forward(seen, sender, backs[sender].send)
                else:
                    sender = key.data
                    seen = backs[sender].recv(65535)
                    forward(seen, sender, partial(_send_to, front, sender))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield front.getsockname(), lambda: counts[0]
    finally:
        over.set()
        thread.join()
        for one in (front, *backs.values()):
            one.close()
