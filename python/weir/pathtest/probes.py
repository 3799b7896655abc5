"""Round trips of small datagrams next to the load, and what they show of the two clocks."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weir.pathtest import wire
from weir.pathtest.datagrams import LENGTH
from weir.pathtest.wire import Datagram

INTERVAL_S = 0.02
"""Between two probes: 50 a second take 37 kbit/s in each direction."""
_TURN_S = 0.2
_OPEN_GAP_S = 0.2


@dataclass(slots=True)
class Probe:
    """One probe. Times are nanoseconds of the monotonic clock of the end where they were taken."""

    sent: int
    received: int = 0
    answered: int = 0
    returned: int = 0

    @property
    def is_lost(self) -> bool:
        """Whether no answer has arrived."""
        return not self.returned

    @property
    def rtt_ns(self) -> int:
        """The round trip, without the time that the server took."""
        return (self.returned - self.sent) - (self.answered - self.received)

    @property
    def offset_ns(self) -> float:
        """The server's clock less ours, wrong by at most half of the round trip (RFC 5905 §8)."""
        return ((self.received - self.sent) + (self.answered - self.returned)) / 2


class Prober:
    """Sends probes to the server, and takes in what the server sends to the same socket."""

    def __init__(
        self,
        server: wire.Address,
        token: bytes,
        on_data: Callable[[Datagram, int, int, int], None] | None = None,
    ) -> None:
        self._token, self._on_data = token, on_data
        self._udp = wire.udp_socket(server, bind=False)
        self._udp.settimeout(_TURN_S)
        self._ended, self._opened = threading.Event(), threading.Event()
        self.probes: list[Probe] = []
        self.late_ns: list[int] = []
        """How late each probe was sent, against its schedule."""
        self._threads = [
            threading.Thread(target=work, name="probes", daemon=True)
            for work in (self._send, self._receive)
        ]

    def start(self) -> None:
        """Starts its threads."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Ends it."""
        if not self._ended.is_set():
            self._ended.set()
            for thread in self._threads:
                thread.join()
            self._udp.close()

    def open(self, wait_s: float) -> bool:
        """Shows the server the address of this socket, to which it may then send a load."""
        deadline = time.monotonic() + wait_s
        while not self._opened.is_set() and time.monotonic() < deadline:
            self.send(Datagram(self._token, wire.OPEN, 0, time.monotonic_ns()), wire.PROBE_BYTES)
            self._opened.wait(_OPEN_GAP_S)
        return self._opened.is_set()

    def send(self, datagram: Datagram, length: int) -> None:
        """Sends a datagram from this socket; a refusal of the network is a loss."""
        with contextlib.suppress(OSError):
            self._udp.send(datagram.bytes(length))

    def send_load(self, data: bytes) -> None:
        """Sends a datagram of the load.

        Raises:
            OSError: it could not be sent.
        """
        self._udp.send(data)

    def _send(self) -> None:
        due = time.monotonic_ns()
        while not self._ended.is_set():
            now = time.monotonic_ns()
            if now < due:
                self._ended.wait((due - now) / 1e9)
                continue
            number = len(self.probes)
            self.late_ns.append(now - due)
            self.probes.append(Probe(now))
            probe = Datagram(self._token, wire.PROBE, number, time.monotonic_ns())
            self.probes[number].sent = probe.sent
            self.send(probe, wire.PROBE_BYTES)
            due = max(due + int(INTERVAL_S * 1e9), now)

    def _receive(self) -> None:
        while not self._ended.is_set():
            try:
                data, _, now, dropped = wire.receive(self._udp, LENGTH)
            except (TimeoutError, ConnectionError):
                continue
            datagram = Datagram.read(data)
            if datagram is None or datagram.token != self._token:
                continue
            if datagram.kind == wire.DATA and self._on_data:
                self._on_data(datagram, len(data), now, dropped)
            elif datagram.kind == wire.OPEN:
                self._opened.set()
            elif datagram.kind == wire.PROBE and datagram.number < len(self.probes):
                probe = self.probes[datagram.number]
                if probe.is_lost and probe.sent == datagram.sent:
                    probe.received, probe.answered = datagram.received, datagram.answered
                    probe.returned = now


@dataclass(frozen=True, slots=True)
class Clocks:
    """The server's clock against ours: a straight line through the best exchanges.

    Of the exchanges before and after the load, those with the smallest round trip have the least
    error. The line through them has the drift of the two clocks.
    """

    at_ns: int
    offset_ns: float
    drift: float
    """Nanoseconds per nanosecond."""
    error_ns: float
    """The most by which the offset may be wrong: half of the smallest round trip."""

    @classmethod
    def of(cls, before: Sequence[Probe], after: Sequence[Probe]) -> Clocks | None:
        """None if no probe was answered."""
        best = [min(part, key=lambda probe: probe.rtt_ns) for part in (before, after) if part]
        if not best:
            return None
        first, last = best[0], best[-1]
        span = last.sent - first.sent
        drift = (last.offset_ns - first.offset_ns) / span if span > 0 else 0.0
        return cls(first.sent, first.offset_ns, drift, max(b.rtt_ns for b in best) / 2)

    def offset_at(self, client_ns: int) -> float:
        """The server's clock less ours at a time of ours."""
        return self.offset_ns + self.drift * (client_ns - self.at_ns)

    def to_client(self, server_ns: int) -> int:
        """A time of the server's clock on ours."""
        near = server_ns - self.offset_ns
        return round(server_ns - self.offset_at(round(near)))


def answer(udp: socket.socket, datagram: Datagram, source: wire.Address, now: int) -> None:
    """The server's answer to a probe: as long as the probe."""
    filled = Datagram(
        datagram.token, datagram.kind, datagram.number, datagram.sent, now, time.monotonic_ns()
    )
    with contextlib.suppress(OSError):
        udp.sendto(filled.bytes(wire.PROBE_BYTES), source)
