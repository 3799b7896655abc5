"""One run at the client: probes of the idle path, the load with probes next to it, probes again."""

from __future__ import annotations

import contextlib
import resource
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from weir import _native
from weir.base.errors import WeirError
from weir.pathtest.control import CONNECT_S, Control
from weir.probes import marks, policing, wire
from weir.probes.datagrams import LENGTH, DatagramLoad
from weir.probes.load import Load, Point, Receiver, Sampler, Sender
from weir.probes.own import MOST_MSS, SAMPLE_S, OwnLoad, OwnSpec, largest_mss
from weir.probes.probes import Clocks, Prober
from weir.probes.record import Flow, FlowLimit, Order, Record, Stream
from weir.probes.responsiveness import Requests
from weir.probes.tcp_info import Reading
from weir.probes.worker import Worker

IDLE_S = 2.0
"""Probes of the idle path before the load."""
AFTER_S = 1.0
"""Probes after it, for the drift of the clocks."""
_DRAIN_S = 5.0
_IPV4_HEADER, _IPV6_HEADER = 20, 40


@dataclass(frozen=True, slots=True)
class MeterState:
    """What the live meter shows."""

    order: Order
    elapsed_s: float
    mbps: float
    rtt_ms: float | None


Watch = Callable[[MeterState], None]
_PathLoad = DatagramLoad | OwnLoad


class Run:
    """One run; it is closed at its end."""

    def __init__(self, control: Control, order: Order) -> None:
        """Requests it of the server.

        Raises:
            WeirError: the connection broke, or the server refuses.
        """
        self._control, self._order = control, order
        self._mss = _mss(control.address) if order.stack is not None else MOST_MSS
        self._token = control.request(order, self._mss)
        self._prober = Prober(control.address, self._token)
        self._loads: list[Load] = []
        self._path: _PathLoad | None = None
        self._is_over = False

    def prepare(self) -> None:
        """Starts the probes, and opens all sockets of the load.

        Raises:
            WeirError: the server cannot be reached over UDP, or a flow could not connect.
        """
        self._prober.start()
        if self._order.is_over_udp:
            self._path = self._path_load()
        else:
            self._loads = self._connected()

    def measure(self, watch: Watch, is_stopped: Callable[[], bool]) -> Record:
        """Probes the idle path, runs the load, and probes again.

        Raises:
            WeirError: the connection broke.
            StoppedError: `is_stopped`.
        """
        order, control, prober = self._order, self._control, self._prober
        for _ in control.turns(IDLE_S, is_stopped):
            pass
        senders = [load for load in self._loads if isinstance(load, Sender)]
        sampler = Sampler(senders, SAMPLE_S)
        requests = None
        if order.udp_bps is None:
            requests = Requests(control.address, self._token, self._loads)
        prober.begin_load()
        control.begin()
        began, cpu_s = time.monotonic_ns(), _cpu_s()
        for started in (*self._loads, self._path, sampler, requests):
            if started is not None:
                started.start()
        meter = _Meter(order, self._loads, self._path, prober)
        for elapsed_s in control.turns(order.duration_s, is_stopped):
            watch(meter.read(elapsed_s))
        ended = time.monotonic_ns()
        cpu_ratio = (_cpu_s() - cpu_s) / ((ended - began) / 1e9)
        self._end_load(sampler, requests)
        control.send_command("stop")
        self._drain(is_stopped)
        theirs = control.record()
        self._is_over = True
        prober.end()
        clocks = _clocks(prober, began, ended)
        record = Record(order, began, prober, clocks, ended, cpu_ratio=cpu_ratio)
        self._fill(record, sampler, theirs)
        record.marks = _marks(prober, theirs)
        record.allowed_bps = self._control.limits["rate_bps"]
        if requests is not None:
            record.foreign_ns = requests.foreign_ns
        return record

    def close(self) -> None:
        """Ends everything that is still at work, at the server too."""
        self._end_load()
        if not self._is_over:
            with contextlib.suppress(WeirError):
                self._control.send_command("drop")
        if isinstance(self._path, DatagramLoad):
            self._path.record()
        self._prober.end()

    def _end_load(self, *workers: Worker | None) -> None:
        for worker in workers:
            if worker is not None:
                worker.end()
        if self._path is not None:
            self._path.end()
        for load in self._loads:
            load.end()

    def _path_load(self) -> _PathLoad:
        """The load over a UDP socket of its own, which the server has seen."""
        order, host = self._order, self._control.host
        try:
            path = _native.PathSocket(wire.as_text(self._control.address))
            name = wire.Datagram(self._token, wire.OPEN, 0, 0).bytes(wire.PROBE_BYTES)
            is_known = path.handshake(name, CONNECT_S)
        except OSError as error:
            raise WeirError(f"{host}: UDP: {error}") from None
        if not is_known:
            raise WeirError(f"{host}: UDP does not reach the server, or not us")
        up, down = order.flows
        if order.stack is None:
            return DatagramLoad(path, self._token, order.udp_bps if up else None)
        spec = OwnSpec(order.stack, self._mss, up, down, order.duration_s)
        return OwnLoad(spec, "client", path, self._control.limits["rate_bps"])

    def _connected(self) -> list[Load]:
        order, control = self._order, self._control
        up, down = order.flows
        limit = control.limits["rate_bps"]
        loads: list[Load] = []
        try:
            for flow in range(up + down):
                connection = socket.create_connection(control.address[:2], timeout=CONNECT_S)
                connection.sendall(wire.load_line(self._token, flow))
                if flow < up:
                    rate = limit and limit / up
                    loads.append(
                        Sender(connection, f"up{flow}", order.control, rate_bps=rate, asks=True)
                    )
                else:
                    loads.append(Receiver(connection, f"down{flow - up}", rate_bps=None, asks=True))
        except OSError as error:
            for load in loads:
                load.end()
            raise WeirError(f"{control.host}: a flow could not connect: {error}") from None
        return loads

    def _drain(self, is_stopped: Callable[[], bool]) -> None:
        """Waits until the queues of the load are empty, then probes the idle path again."""
        probes = self._prober.probes
        idle = min((p.rtt_ns for p in probes if not p.is_lost), default=None)
        for _ in self._control.turns(_DRAIN_S, is_stopped):
            last = [p.rtt_ns for p in probes[-50:] if not p.is_lost][-3:]
            if idle is not None and last and max(last) < 1.2 * idle + 2e6:
                break
        for _ in self._control.turns(AFTER_S, is_stopped):
            pass

    def _fill(self, record: Record, sampler: Sampler, theirs: dict[str, Any]) -> None:
        """Puts what the two ends measured together."""
        clocks, path = record.clocks, self._path
        own, failures = list(sampler.rows), list[str | None]()
        limits = [*theirs["limits"]]
        logs = [list(load.log) for load in self._loads if isinstance(load, Receiver)]
        if isinstance(path, OwnLoad):
            if path.failure is not None:
                raise WeirError(path.failure)
            own, logs, failures = path.samples(), path.logs(), path.failures()
            record.dropped = path.dropped() + int(theirs["dropped"])
            record.refused = path.refused(), int(theirs["refused"])
            limits += path.limits()
            record.loaded_ns = path.latencies()
            record.loaded_ns += [(_ours(clocks, int(t)), int(ns)) for t, ns in theirs["latencies"]]
        elif isinstance(path, DatagramLoad):
            ours = path.record()
            record.streams = list(_streams(ours, theirs["datagrams"], clocks))
            record.limits = list(_policers(ours, theirs["datagrams"]))
            return
        else:
            failures = [load.failure for load in self._loads]
            limits += sampler.policers(0)
            record.loaded_ns = [point for load in self._loads for point in load.latencies_ns]
        record.limits = sorted((FlowLimit(*row) for row in limits), key=lambda row: row.flow)
        record.flows = list(_flows(self._order, own, logs, failures, theirs, clocks))


class _Meter:
    """Goodput of the last tenth of a second, and the newest round trip."""

    def __init__(
        self, order: Order, loads: Sequence[Load], path: _PathLoad | None, prober: Prober
    ) -> None:
        self._order, self._path, self._prober = order, path, prober
        self._senders = [load for load in loads if isinstance(load, Sender)]
        self._receivers = [load for load in loads if isinstance(load, Receiver)]
        self._bytes, self._at = 0, time.monotonic()

    def read(self, elapsed_s: float) -> MeterState:
        """What there is to show now."""
        readings = [sender.read() for sender in self._senders]
        moved = sum(load.bytes for load in self._receivers)
        moved += sum(reading.acked_bytes for reading in readings if reading)
        if self._path is not None:  # of datagrams up, what is sent: only the server knows the rest
            moved += self._path.moved
        now = time.monotonic()
        mbps = (moved - self._bytes) * 8 / 1e6 / max(now - self._at, 1e-3)
        self._bytes, self._at = moved, now
        newest = next(
            (p.rtt_ns / 1e6 for p in reversed(self._prober.probes) if not p.is_lost), None
        )
        return MeterState(self._order, elapsed_s, mbps, newest)


def _mss(server: wire.Address) -> int:
    """The largest segment of our transport on the path, as far as this machine knows."""
    with wire.udp_socket(server, bind=False) as udp:
        ip_header = _IPV6_HEADER if udp.family == socket.AF_INET6 else _IPV4_HEADER
        return largest_mss(wire.path_mtu(udp), ip_header)


def _marks(prober: Prober, theirs: dict[str, Any]) -> list[marks.MarkCount]:
    at_server = {int(mark): {int(m): n for m, n in seen.items()} for mark, seen in theirs["marks"]}
    return marks.counted(prober.marked, prober.seen, at_server)


def _clocks(prober: Prober, began: int, ended: int) -> Clocks | None:
    known = [probe for probe in prober.probes if not probe.is_lost]
    before = [probe for probe in known if probe.returned < began]
    after = [probe for probe in known if probe.sent > ended]
    return Clocks.of(before, after)


def _flows(
    order: Order,
    own: Sequence[tuple[int, int, Reading]],
    own_logs: Sequence[list[Point]],
    failures: Sequence[str | None],
    theirs: dict[str, Any],
    clocks: Clocks | None,
) -> Iterator[Flow]:
    """Puts the two ends of each flow together."""

    def ours(server_ns: int) -> int:
        return _ours(clocks, server_ns)

    def of(rows: Sequence[tuple[int, int, Reading]], flow: int) -> list[tuple[int, Reading]]:
        return [(t, reading) for t, index, reading in rows if index == flow]

    their_logs = [[(ours(t), count) for t, count in log] for log in theirs["logs"]]
    their_rows = [(ours(t), index, Reading(*values)) for t, index, values in theirs["samples"]]
    up, down = order.flows
    failed = [*failures, *theirs["failures"], *[None] * (up + down)]
    for flow in range(up):
        yield Flow(f"up{flow}", their_logs[flow], of(own, flow), failed[flow])
    for flow in range(down):
        yield Flow(f"down{flow}", own_logs[flow], of(their_rows, flow), failed[up + flow])


def _ours(clocks: Clocks | None, server_ns: int) -> int:
    """A time of the server on our clock, as far as the clocks are known."""
    return server_ns if clocks is None else clocks.to_client(server_ns)


def _policers(ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[FlowLimit]:
    """Policers that datagrams went through, up and down."""
    flow = 0
    for sent, received in ((ours["sent"], theirs["received"]), (theirs["sent"], ours["received"])):
        if sent is None:
            continue
        first = [policing.Datagram(*map(int, one)) for one in received["first"]]
        policer = policing.of_datagrams(first, LENGTH)
        if policer is not None:
            yield FlowLimit(flow, "policer", None, *policer)
        flow += 1


def _streams(
    ours: dict[str, Any], theirs: dict[str, Any], clocks: Clocks | None
) -> Iterator[Stream]:
    if ours["sent"] is not None:
        yield _stream("up0", ours["sent"], theirs["received"], clocks, is_theirs=True)
    if theirs["sent"] is not None:
        yield _stream("down0", theirs["sent"], ours["received"], clocks, is_theirs=False)


def _stream(
    name: str,
    sent: Sequence[int],
    received: dict[str, Any],
    clocks: Clocks | None,
    *,
    is_theirs: bool,
) -> Stream:
    log = [(int(t), int(count)) for t, count in received["log"]]
    delays = [int(delay) for _, delay in received["transits"]]
    if clocks is not None:
        times = [int(t) for t, _ in received["transits"]]
        if is_theirs:
            times = [clocks.to_client(t) for t in times]
            log = [(clocks.to_client(t), count) for t, count in log]
        sign = -1 if is_theirs else 1
        delays = [
            round(delay + sign * clocks.offset_at(t))
            for t, delay in zip(times, delays, strict=True)
        ]
    counts = {
        name: int(received[name])
        for name in ("received", "bytes", "reordered", "dropped", "jitter_ns")
    }
    return Stream(name, int(sent[0]), int(sent[1]), **counts, log=log, delays_ns=delays)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
