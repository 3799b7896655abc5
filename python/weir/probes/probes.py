"""Round trips of small datagrams next to the load, and what they show of clocks and of marks."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from weir.probes import wire
from weir.probes.marks import MARKS
from weir.probes.wire import Datagram

INTERVAL_S = 0.02
"""Between two probes: 50 a second take 37 kbit/s in each direction."""
_TURN_S = 0.2


@dataclass(slots=True)
class Probe:
    """One probe. Times are nanoseconds of the monotonic clock of the end where they were taken."""

    sent: int
    received: int = 0
    answered: int = 0
    returned: int = 0
    is_refused: bool = False
    """Whether this machine's packet filter kept it from the path."""

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
    """Sends probes to the server, and as many probes of marks until the load begins."""

    def __init__(self, server: wire.Address, token: bytes) -> None:
        self._token = token
        self._udp = wire.udp_socket(server, bind=False)
        self._udp.settimeout(_TURN_S)
        self._ended, self._loaded = threading.Event(), threading.Event()
        self.probes: list[Probe] = []
        self.late_ns: list[int] = []
        """How late each probe was sent, against its schedule."""
        self.marked: list[int] = []
        """The marks that were sent."""
        self.seen: dict[int, tuple[int, int]] = {}
        """By the number of such a probe: its mark at the server, and that of the answer here."""
        self._threads = [
            threading.Thread(target=work, name="probes", daemon=True)
            for work in (self._send, self._receive)
        ]

    def start(self) -> None:
        """Starts its threads."""
        for thread in self._threads:
            thread.start()

    def begin_load(self) -> None:
        """From now on only plain probes are sent."""
        self._loaded.set()

    def end(self) -> None:
        """Ends it."""
        if not self._ended.is_set():
            self._ended.set()
            for thread in self._threads:
                thread.join()
            self._udp.close()

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
            self.probes[number].is_refused = not self._send_one(probe)
            if not self._loaded.is_set():
                self._send_mark()
            due = max(due + int(INTERVAL_S * 1e9), now)

    def _send_mark(self) -> None:
        number = len(self.marked)
        mark = MARKS[number % len(MARKS)]
        self.marked.append(mark)
        self._send_one(Datagram(self._token, wire.MARK, number, time.monotonic_ns(), mark=mark))

    def _send_one(self, datagram: Datagram) -> bool:
        """Whether this machine let it out. What the network refuses is a loss."""
        try:
            wire.send(self._udp, datagram, wire.PROBE_BYTES)
        except PermissionError:
            return False
        except OSError:
            pass
        return True

    def _receive(self) -> None:
        while not self._ended.is_set():
            try:
                arrival = wire.receive(self._udp, wire.PROBE_BYTES)
            except (TimeoutError, ConnectionError):
                continue
            datagram = Datagram.read(arrival.data)
            if datagram is None or datagram.token != self._token:
                continue
            if datagram.kind == wire.MARK and datagram.number < len(self.marked):
                self.seen.setdefault(datagram.number, (datagram.seen, arrival.mark))
            elif datagram.kind == wire.PROBE and datagram.number < len(self.probes):
                probe = self.probes[datagram.number]
                if probe.is_lost and probe.sent == datagram.sent:
                    probe.received, probe.answered = datagram.received, datagram.answered
                    probe.returned = arrival.time_ns


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


def answer(udp: socket.socket, datagram: Datagram, arrival: wire.Arrival) -> None:
    """The server's answer to a probe: as long as the probe, and with its mark."""
    filled = Datagram(
        datagram.token,
        datagram.kind,
        datagram.number,
        datagram.sent,
        arrival.time_ns,
        time.monotonic_ns(),
        datagram.mark,
        arrival.mark,
    )
    with contextlib.suppress(OSError):
        wire.send(udp, filled, wire.PROBE_BYTES, arrival.source)
