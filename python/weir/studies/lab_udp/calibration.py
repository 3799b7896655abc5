"""The constants of the models, each computed from a few named published cells.

None comes from the cells of windows under delay that the models are then held against.

What is known from elsewhere: a UDP socket's receive buffer holds 64 KiB by default on the systems
of these laboratories, and the file is the same in both sources.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

from weir.studies.lab_udp.published import Source

SOCKET_BUFFER = "64kib"
RELAY_HANDLINGS = 2
"""In one exchange the relay handles a datagram and its acknowledgement."""

_JITTER_SHARE = 0.5
"""How much the time for preparing a datagram varies: assumed, for it is not published. It keeps
sender and relay from locking into one of the phases that real machines drift through."""

_WINDOWED = ("W=5", "W=10", "W=20", "W=30")


@dataclass(frozen=True, slots=True)
class Model:
    """What the published protocol and relay are taken to be."""

    payload_bytes: int
    datagrams: int
    timeout_ms: float
    send_ms: float
    send_jitter_ms: float
    relay_ms: float
    derivation: tuple[str, ...]


def calibrate_002(source: Source) -> Model:
    """The constants of source 002: two hosts and a relay whose program is printed."""
    delay, loss = source.table("delay"), source.table("loss")
    waiting = delay.row("stop-and-wait").times
    exchanges = linear_regression(delay.columns, waiting).slope * 1e3
    payload, datagrams = _datagrams(delay.fixed.file_bytes, exchanges)
    exchange = loss.row("stop-and-wait").times[0] * 1e3 / datagrams
    send = fmean(loss.row(name).times[0] for name in _WINDOWED) * 1e3 / datagrams
    relay = (exchange - send) / RELAY_HANDLINGS
    if source.timeout_s is None:
        raise ValueError(f"source {source.id} prints its timeout")
    return Model(
        payload,
        datagrams,
        source.timeout_s * 1e3,
        send,
        send * _JITTER_SHARE,
        relay,
        tuple(_words_002(exchanges, payload, datagrams, exchange, send, relay)),
    )


def _words_002(
    exchanges: float, payload: int, datagrams: int, exchange: float, send: float, relay: float
) -> Iterator[str]:
    yield (
        f"Datagram: row stop-and-wait of table delay grows by {exchanges:.0f} delays, so the file "
        f"takes about as many exchanges; rounded to whole kilobytes that is a payload of {payload} "
        f"bytes and {datagrams} datagrams."
    )
    yield (
        f"Sender: with neither delay nor loss the four windowed rows take {send:.2f} ms per "
        "datagram whatever the window, and nothing overflows: the sender itself sets that pace."
    )
    yield (
        f"Relay: stop-and-wait takes {exchange:.2f} ms per exchange there; what the sender does "
        f"not need goes in equal parts to the two datagrams that the relay, an interpreted program "
        f"that prints each, handles: {relay:.2f} ms each."
    )
    yield (
        f"Assumed: the sender's time varies by {_JITTER_SHARE:.0%} either way, so that no run "
        "locks into one phase; the relay's socket buffer is 64 KiB, the systems' default. The "
        "timeout is printed."
    )


def calibrate_000(source: Source, other: Model) -> Model:
    """The constants of source 000, which prints neither relay nor timeout."""
    delay, loss = source.table("delay"), source.table("loss")
    delayed = [index for index, column in enumerate(delay.columns) if column > 0]
    waiting = delay.row("stop-and-wait").times
    slope = linear_regression(
        [delay.columns[index] for index in delayed], [waiting[index] for index in delayed]
    ).slope
    exchanges = slope * 1e3
    payload, datagrams = _datagrams(delay.fixed.file_bytes, exchanges)
    cost = linear_regression(_losses(loss.columns), loss.row("stop-and-wait").times)
    timeout = cost.slope * 1e3 / datagrams
    exchange = cost.intercept * 1e3 / datagrams
    send = exchange * other.send_ms / (other.send_ms + RELAY_HANDLINGS * other.relay_ms)
    relay = (exchange - send) / RELAY_HANDLINGS
    words = (
        f"Datagram: row stop-and-wait of table delay grows by {exchanges:.0f} delays between "
        f"{delay.columns[delayed[0]]:g} and {delay.columns[-1]:g} ms, which makes a payload of "
        f"{payload} bytes and {datagrams} datagrams.",
        f"Timeout: row stop-and-wait of table loss, fitted over the losses expected at each rate, "
        f"grows by {timeout:.0f} ms per loss; the source does not print its timeout.",
        f"Hosts: the same fit leaves {exchange:.2f} ms per exchange without loss, divided between "
        f"sender ({send:.2f} ms) and relay ({relay:.2f} ms per datagram) as in source 002.",
    )
    return Model(payload, datagrams, timeout, send, send * _JITTER_SHARE, relay, words)


def _datagrams(file_bytes: int, exchanges: float) -> tuple[int, int]:
    """The payload in whole kilobytes, as a programmer writes it, and the number of datagrams."""
    payload = max(round(file_bytes / exchanges, -3), 1000)
    return int(payload), math.ceil(file_bytes / payload)


def _losses(percents: Sequence[float]) -> list[float]:
    """Losses expected for each datagram that arrives in the end."""
    return [p / (100 - p) for p in percents]
