"""The constants of the models, each computed from a few named published cells.

Those of source 002 come from its stop-and-wait rows and from cells without delay and loss, those of
source 000 from its stop-and-wait rows alone. The models are then held against all other cells.

What is known from elsewhere: a UDP socket's receive buffer holds 64 KiB by default on the systems
of these laboratories, and the file is the same in both sources.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

from weir.studies.lab_udp.published import Source, Table

SOCKET_BUFFER = "64kib"
RELAY_HANDLINGS = 2
"""In one exchange the relay handles a datagram and its acknowledgement."""

_JITTER_SHARE = 0.5
"""How much the time for preparing a datagram varies: assumed, for it is not published. It keeps
sender and relay from locking into one of the phases that real machines drift through."""

_BURST_MS = 0.05
"""What a sender needs that copies a datagram from memory into its socket: assumed."""

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
    turn_ms: float | None
    """What the relay needs for each datagram of the data once a delay is set, one after the other;
    the delay itself then passes next to that. None: the delay is what it needs."""
    times_handshake: bool
    """Whether the published times contain it, so that its losses cost a timeout too."""
    derivation: tuple[str, ...]

    def needs_ms(self, delay_ms: float) -> float:
        """The time in which the relay handles one datagram of the data."""
        if self.turn_ms is None or delay_ms == 0:
            return self.relay_ms + delay_ms
        return self.relay_ms + self.turn_ms

    def later_ms(self, delay_ms: float) -> float:
        """What a datagram of the data is late besides, while the relay handles others."""
        return 0.0 if self.turn_ms is None else delay_ms


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
        None,
        source.times_handshake,
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


def calibrate_000(source: Source) -> Model:
    """The constants of source 000, which prints neither relay nor timeout: from stop-and-wait."""
    delay, loss, size = (source.table(name) for name in ("delay", "loss", "size"))
    delayed = [index for index, column in enumerate(delay.columns) if column > 0]
    waiting = delay.row("stop-and-wait").times
    slope = linear_regression(
        [delay.columns[index] for index in delayed], [waiting[index] for index in delayed]
    ).slope
    exchanges = slope * 1e3
    payload, datagrams = _datagrams(delay.fixed.file_bytes, exchanges)
    cells = [
        *_exchanges(loss, payload),
        *(own for own in _exchanges(size, payload) if own[0] != datagrams),
    ]
    exchange, timeout = time_and_timeout(cells)
    relay = (exchange - _BURST_MS) / RELAY_HANDLINGS
    lost = timeout * _losses([delay.fixed.loss_percent])[0]
    turn = fmean(
        waiting[index] * 1e3 / datagrams - exchange - lost - delay.columns[index]
        for index in delayed
    )
    words = (
        f"Datagram: row stop-and-wait of table delay grows by {exchanges:.0f} delays, which makes "
        f"a payload of {payload} bytes and {datagrams} datagrams.",
        f"Timeout and hosts: rows stop-and-wait of tables loss and size, fitted together by their "
        f"relative errors, give {exchange:.2f} ms per exchange and {timeout:.0f} ms per loss; the "
        "source does not print its timeout.",
        f"Sender: it bursts, as its report says (“发送端一次性发送太多内容”): {_BURST_MS:g} ms per "
        f"datagram, assumed. What an exchange needs else is the relay's, {relay:.2f} ms for each "
        "of the two datagrams.",
        f"Relay under delay: in row stop-and-wait of table delay an exchange takes {turn:.1f} ms "
        "more than the delay explains, on average over its delays. The relay is taken to spend "
        "that on one datagram after the other, and the delay to pass besides. That it is not the "
        "delay itself which is spent so was chosen after seeing row W=8; rows W=16 and Reno test "
        "it.",
    )
    jitter = _BURST_MS * _JITTER_SHARE
    return Model(
        payload,
        datagrams,
        timeout,
        _BURST_MS,
        jitter,
        relay,
        turn,
        source.times_handshake,
        words,
    )


def _exchanges(table: Table, payload: int) -> Iterator[tuple[int, float, float]]:
    """Of each cell of stop-and-wait: datagrams, losses per datagram, milliseconds."""
    for column, time in enumerate(table.row("stop-and-wait").times):
        conditions = table.conditions(column)
        datagrams = math.ceil(conditions.file_bytes / payload)
        yield datagrams, _losses([conditions.loss_percent])[0], time * 1e3


def time_and_timeout(cells: Sequence[tuple[int, float, float]]) -> tuple[float, float]:
    """Least squares of relative errors of `datagrams × (exchange + losses × timeout)`."""
    rows = [(n / time, n * losses / time) for n, losses, time in cells]
    aa, ab, bb = (math.fsum(row[i] * row[j] for row in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    a, b = (math.fsum(row[i] for row in rows) for i in (0, 1))
    determinant = aa * bb - ab * ab
    return (a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant


def _datagrams(file_bytes: int, exchanges: float) -> tuple[int, int]:
    """The payload in whole kilobytes, as a programmer writes it, and the number of datagrams."""
    payload = max(round(file_bytes / exchanges, -3), 1000)
    return int(payload), math.ceil(file_bytes / payload)


def _losses(percents: Sequence[float]) -> list[float]:
    """Losses expected for each datagram that arrives in the end."""
    return [p / (100 - p) for p in percents]
