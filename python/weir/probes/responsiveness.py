"""Responsiveness in round trips per minute (draft-ietf-ippm-responsiveness-09).

Two kinds of requests are timed under load: on new connections ("foreign": the TCP handshake, then
one request) and on the loaded connections themselves. Here are no TLS and no HTTP, so a foreign
probe has two times instead of three, as the draft's formula for unencrypted HTTP has. The load is
what the user chose, and not the draft's growing number of connections. On flows of our transport, a
request takes until a byte that an application has ready is acknowledged, with all data before it.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Sequence

from weir.probes import wire
from weir.probes.load import Load
from weir.probes.worker import Worker

INTERVAL_S = 0.1
"""Between two probes, which alternate between the kinds; the draft allows 100 a second."""
CLASSES = ((300.0, "poor"), (1000.0, "fair"), (6000.0, "good"))
"""Responsiveness below each limit, in RPM, and our word for it; above all it is excellent."""

_TRIMMED = 0.05
_PER_MINUTE_MS = 60_000.0
_LONGEST_S = 5.0


def trimmed_mean(values: Sequence[float]) -> float | None:
    """The mean without the largest twentieth (the draft's `TM`)."""
    kept = sorted(values)[: max(1, len(values) - int(len(values) * _TRIMMED))]
    return sum(kept) / len(kept) if kept else None


def round_trips_per_minute(
    handshakes_ms: Sequence[float], answers_ms: Sequence[float], loaded_ms: Sequence[float]
) -> float | None:
    """The mean of the responsiveness of new connections and of loaded ones; None without either."""
    means = [trimmed_mean(values) for values in (handshakes_ms, answers_ms, loaded_ms)]
    handshake, answer, loaded = means
    if not handshake or not answer or not loaded:
        return None
    foreign = _PER_MINUTE_MS / ((handshake + answer) / 2)
    return (foreign + _PER_MINUTE_MS / loaded) / 2


def in_words(rpm: float) -> str:
    """The class of a responsiveness."""
    return next((word for limit, word in CLASSES if rpm < limit), "excellent")


class Requests(Worker):
    """Makes requests next to and on the loads, until it is ended.

    Without loads it makes only those on new connections: our transport makes the others itself.
    """

    def __init__(self, server: wire.Address, token: bytes, loads: Sequence[Load]) -> None:
        super().__init__("requests")
        self._server, self._line, self._loads = server, wire.echo_line(token), loads
        self.foreign_ns: list[tuple[int, int, int]] = []
        """When a connection began, the time of its handshake, and of its request."""

    def _run(self) -> None:
        turn = 0
        while not self._ended.wait(INTERVAL_S):
            turn += 1
            if turn % 2 and self._loads:
                self._loads[turn // 2 % len(self._loads)].request()
            elif not turn % 2:
                # A handshake may last longer than the interval.
                threading.Thread(target=self._foreign, name="request", daemon=True).start()

    def _foreign(self) -> None:
        began = time.monotonic_ns()
        with (
            contextlib.suppress(OSError),
            socket.create_connection(self._server[:2], timeout=_LONGEST_S) as connection,
        ):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected = time.monotonic_ns()
            connection.sendall(self._line)
            if connection.recv(1):
                ended = time.monotonic_ns()
                self.foreign_ns.append((began, connected - began, ended - connected))
