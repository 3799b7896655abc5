"""The load of a path test over UDP: datagrams of one length at a rate, and what arrives of them."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from typing import Any

from weir.pathtest.wire import DATA, Datagram
from weir.pathtest.worker import Worker

LENGTH = 1200
"""UDP payload: what every path carries (RFC 9000 §14)."""
HEADERS = 20 + 8
"""Bytes of IPv4 and UDP, which the rate includes."""

_MOST_DELAYS = 200_000
_MOST_LATE_S = 0.02
"""After a longer pause the datagrams that were missed are not made up for in one burst."""


class DatagramSender(Worker):
    """Sends at a rate until it is ended."""

    def __init__(self, send: Callable[[bytes], object], token: bytes, rate_bps: float) -> None:
        super().__init__("datagrams")
        self._send, self._token = send, token
        self._gap_ns = (LENGTH + HEADERS) * 8 * 1e9 / rate_bps
        self.sent = 0
        self.refused = 0
        """Datagrams that this machine did not send, for want of buffers."""
        self.began_ns = self.ended_ns = 0

    def record(self) -> dict[str, Any]:
        """What was sent."""
        return {"sent": self.sent, "refused": self.refused}

    def _run(self) -> None:
        self.began_ns = time.monotonic_ns()
        due = float(self.began_ns)
        while not self._ended.is_set():
            now = time.monotonic_ns()
            if now < due:
                self._ended.wait((due - now) / 1e9)
                continue
            due = max(due, now - _MOST_LATE_S * 1e9) + self._gap_ns
            datagram = Datagram(self._token, DATA, self.sent & 0xFFFF_FFFF, time.monotonic_ns())
            try:
                self._send(datagram.bytes(LENGTH))
            except OSError:
                self.refused += 1
            self.sent += 1
        self.ended_ns = time.monotonic_ns()


class DatagramReceiver:
    """Counts datagrams, and keeps their times, up to a number of them.

    The jitter is that of RFC 3550 §6.4.1: a mean of differences of transit times, with a gain of
    1/16. It needs no common clock.
    """

    def __init__(self) -> None:
        self.received = self.reordered = 0
        self.bytes = 0
        self.jitter_ns = 0.0
        self._highest = -1
        self._transit: int | None = None
        self._dropped_before: int | None = None
        self.dropped = 0
        """Datagrams that this machine dropped, for want of space in the receive buffer."""
        self.arrived_ns, self.transits_ns = array("q"), array("q")

    def take(self, datagram: Datagram, length: int, now: int, dropped: int = 0) -> None:
        """Takes one in that was received at `now`; the socket has `dropped` some in its life."""
        if self._dropped_before is None:
            self._dropped_before = dropped
        self.dropped = dropped - self._dropped_before
        transit = now - datagram.sent
        if self._transit is not None:
            self.jitter_ns += (abs(transit - self._transit) - self.jitter_ns) / 16
        self._transit = transit
        self.received += 1
        self.bytes += length
        if datagram.number < self._highest:
            self.reordered += 1
        self._highest = max(self._highest, datagram.number)
        if len(self.arrived_ns) < _MOST_DELAYS:
            self.arrived_ns.append(now)
            self.transits_ns.append(transit)

    def record(self) -> dict[str, Any]:
        """What was received."""
        return {
            "received": self.received,
            "bytes": self.bytes,
            "reordered": self.reordered,
            "dropped": self.dropped,
            "jitter_ns": round(self.jitter_ns),
            "arrived_ns": list(self.arrived_ns),
            "transits_ns": list(self.transits_ns),
        }
