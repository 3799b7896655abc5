"""The end of a path test that decides: it connects to a server, and runs loads next to probes."""

from __future__ import annotations

import contextlib
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from weir.errors import InputError, StoppedError, WeirError
from weir.pathtest import channel, server, tcp_info, wire
from weir.pathtest.channel import Channel
from weir.pathtest.datagrams import LENGTH, DatagramReceiver, DatagramSender
from weir.pathtest.load import Load, Point, Receiver, Sampler, Sender
from weir.pathtest.probes import Clocks, Prober
from weir.pathtest.responsiveness import Requests
from weir.pathtest.session import SAMPLE_S, TICK_S
from weir.pathtest.tcp_info import Reading

Direction = Literal["up", "down", "both"]
"""Up is from the client to the server. Both are at the same time."""
DIRECTIONS: tuple[Direction, ...] = ("up", "down", "both")

IDLE_S = 2.0
"""Probes of the idle path before the load."""
AFTER_S = 1.0
"""Probes after it, for the drift of the clocks."""
_CONNECT_S = 10.0
_RECORD_S = 60.0
_TURN_S = 0.1
_DRAIN_S = 5.0
_SWITCH_S = 0.0005


@dataclass(frozen=True, slots=True)
class Order:
    """One run: a load of TCP flows by one congestion control, or of datagrams at a rate."""

    control: str
    direction: Direction
    streams: int
    duration_s: float
    warmup_s: float
    """Part of the duration that is not measured."""
    udp_bps: float | None = None

    @property
    def flows(self) -> tuple[int, int]:
        """Flows up and down."""
        up, down = self.direction != "down", self.direction != "up"
        return up * self.streams, down * self.streams


@dataclass(slots=True)
class Flow:
    """One flow of a run. Times are nanoseconds of the client's monotonic clock."""

    name: str
    log: list[Point]
    """Bytes received so far."""
    samples: list[tuple[int, Reading]]
    failure: str | None = None


@dataclass(slots=True)
class Stream:
    """Datagrams in one direction. Transits are on two clocks: the receiver's less the sender's."""

    name: str
    sent: int
    refused: int
    received: int
    bytes: int
    reordered: int
    dropped: int
    """By the receiving machine, and not by the path."""
    jitter_ns: int
    arrived_ns: list[int]
    """On the client's clock."""
    delays_ns: list[int]
    """One-way delays, as far as the clocks are known."""


@dataclass(slots=True)
class Record:
    """What one run measured."""

    order: Order
    began_ns: int
    prober: Prober
    clocks: Clocks | None
    load_end_ns: int
    flows: list[Flow] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    foreign_ns: list[tuple[int, int, int]] = field(default_factory=list)
    loaded_ns: list[Point] = field(default_factory=list)
    cpu_ratio: float = 0.0
    """Processor time of this process over the time of the load."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What the live meter shows."""

    order: Order
    elapsed_s: float
    mbps: float
    rtt_ms: float | None


Watch = Callable[[Moment], None]


class Client:
    """A client of one server; a context manager that holds the control connection."""

    def __init__(self, host: str, key: bytes | None) -> None:
        """Connects to `HOST[:PORT]`.

        Raises:
            InputError: the key is not the server's, or this is no Linux.
            WeirError: no server answers there.
        """
        self.controls = tcp_info.controls()
        """The congestion controls of this machine."""
        name, port = server.split(host, "HOST")
        if not name or not port:
            raise InputError(f"HOST {host}: name a host, as in example.org or [::1]:{wire.PORT}")
        self.host = host
        try:
            connection = socket.create_connection((name, port), timeout=_CONNECT_S)
        except OSError as error:
            raise WeirError(
                f"{host}: {error.strerror or error}; start weir serve there (port {port}, TCP and "
                "UDP)"
            ) from None
        self._server: wire.Address = tuple(connection.getpeername())
        try:
            self._channel: Channel = channel.connect(connection, key)
            hello = self._channel.receive(_CONNECT_S)
        except WeirError as error:
            connection.close()
            raise type(error)(f"{host}: {error}") from None
        self.server_controls = [str(name) for name in hello["controls"]]
        self.limits: dict[str, Any] = hello["limits"]

    def __enter__(self) -> Self:
        sys.setswitchinterval(_SWITCH_S)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(WeirError):
            self._channel.send(do="bye")
        self._channel.close()

    def run(self, order: Order, watch: Watch, is_stopped: Callable[[], bool]) -> Record:
        """Runs one load.

        Raises:
            WeirError: the connection broke.
            StoppedError: `is_stopped`.
        """
        up, down = order.flows
        self._channel.send(
            do="run",
            control=order.control,
            up=up,
            down=down,
            duration_s=order.duration_s,
            udp_bps=order.udp_bps,
        )
        token = bytes.fromhex(self._channel.receive(_CONNECT_S)["token"])
        sink = DatagramReceiver()
        prober = Prober(self._server, token, sink.take)
        prober.start()
        loads: list[Load] = []
        try:
            if order.udp_bps is None:
                loads = self._connected(order, token)
            elif down and not prober.open(_CONNECT_S):
                raise WeirError(f"{self.host}: UDP does not reach the server, or not us")
            for _ in self._turns(IDLE_S, is_stopped):
                pass
            return self._loaded(order, token, prober, loads, sink, watch, is_stopped)
        finally:
            for load in loads:
                load.end()
            prober.end()

    def _connected(self, order: Order, token: bytes) -> list[Load]:
        up, down = order.flows
        limit = self.limits["rate_bps"]
        loads: list[Load] = []
        try:
            for flow in range(up + down):
                connection = socket.create_connection(self._server[:2], timeout=_CONNECT_S)
                connection.sendall(wire.load_line(token, flow))
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
            raise WeirError(f"{self.host}: a flow could not connect: {error}") from None
        return loads

    def _loaded(
        self,
        order: Order,
        token: bytes,
        prober: Prober,
        loads: list[Load],
        sink: DatagramReceiver,
        watch: Watch,
        is_stopped: Callable[[], bool],
    ) -> Record:
        senders = [load for load in loads if isinstance(load, Sender)]
        sampler = Sampler(senders, SAMPLE_S)
        source = None
        if order.udp_bps is not None and order.flows[0]:
            source = DatagramSender(prober.send_load, token, order.udp_bps)
        requests = Requests(self._server, token, loads) if loads else None
        self._channel.send(do="go")
        self._channel.receive(_CONNECT_S)
        began, cpu_s = time.monotonic_ns(), _cpu_s()
        for started in (*loads, sampler, source, requests):
            if started is not None:
                started.start()
        meter = _Meter(order, loads, source, sink, prober)
        for elapsed_s in self._turns(order.duration_s, is_stopped):
            watch(meter.read(elapsed_s))
        ended = time.monotonic_ns()
        cpu_ratio = (_cpu_s() - cpu_s) / ((ended - began) / 1e9)
        for running in (sampler, source, requests):
            if running is not None:
                running.end()
        for load in loads:
            load.end()
        self._channel.send(do="stop")
        self._drain(prober, is_stopped)
        self._channel.send(do="end")
        theirs = self._channel.receive(_RECORD_S)["record"]
        prober.end()
        clocks = _clocks(prober, began, ended)
        record = Record(order, began, prober, clocks, ended, cpu_ratio=cpu_ratio)
        record.flows = list(_flows(loads, sampler.rows, theirs, clocks))
        record.streams = list(_streams(order, source, sink, theirs, clocks))
        if requests is not None:
            record.foreign_ns = requests.foreign_ns
        record.loaded_ns = [point for load in loads for point in load.latencies_ns]
        return record

    def _drain(self, prober: Prober, is_stopped: Callable[[], bool]) -> None:
        """Waits until the queues of the load are empty, then probes the idle path again."""
        idle = min((p.rtt_ns for p in prober.probes if not p.is_lost), default=None)
        for _ in self._turns(_DRAIN_S, is_stopped):
            last = [p.rtt_ns for p in prober.probes[-50:] if not p.is_lost][-3:]
            if idle is not None and last and max(last) < 1.2 * idle + 2e6:
                break
        for _ in self._turns(AFTER_S, is_stopped):
            pass

    def _turns(self, seconds: float, is_stopped: Callable[[], bool]) -> Iterator[float]:
        """The time so far, ten times a second; the server hears of us once a second."""
        began = spoken = time.monotonic()
        while (now := time.monotonic()) < began + seconds:
            if is_stopped():
                raise StoppedError("interrupted")
            if now - spoken > TICK_S:
                self._channel.send(do="tick")
                spoken = now
            yield now - began
            time.sleep(min(_TURN_S, max(0.0, began + seconds - time.monotonic())))


class _Meter:
    """Goodput of the last tenth of a second, and the newest round trip."""

    def __init__(
        self,
        order: Order,
        loads: Sequence[Load],
        source: DatagramSender | None,
        sink: DatagramReceiver,
        prober: Prober,
    ) -> None:
        self._order, self._source, self._sink, self._prober = order, source, sink, prober
        self._senders = [load for load in loads if isinstance(load, Sender)]
        self._receivers = [load for load in loads if isinstance(load, Receiver)]
        self._bytes, self._at = 0, time.monotonic()

    def read(self, elapsed_s: float) -> Moment:
        """What there is to show now."""
        readings = [sender.read() for sender in self._senders]
        received = sum(load.bytes for load in self._receivers) + self._sink.bytes
        moved = received + sum(reading.acked_bytes for reading in readings if reading)
        if self._source is not None:  # only the server knows what arrives of these
            moved += self._source.sent * LENGTH
        now = time.monotonic()
        mbps = (moved - self._bytes) * 8 / 1e6 / max(now - self._at, 1e-3)
        self._bytes, self._at = moved, now
        newest = next(
            (p.rtt_ns / 1e6 for p in reversed(self._prober.probes) if not p.is_lost), None
        )
        return Moment(self._order, elapsed_s, mbps, newest)


def _clocks(prober: Prober, began: int, ended: int) -> Clocks | None:
    known = [probe for probe in prober.probes if not probe.is_lost]
    before = [probe for probe in known if probe.returned < began]
    after = [probe for probe in known if probe.sent > ended]
    return Clocks.of(before, after)


def _flows(
    loads: Sequence[Load],
    rows: Sequence[tuple[int, int, Reading]],
    theirs: dict[str, Any],
    clocks: Clocks | None,
) -> Iterator[Flow]:
    """Puts the two ends of each flow together."""

    def ours(server_ns: int) -> int:
        return server_ns if clocks is None else clocks.to_client(server_ns)

    logs = [[(ours(t), count) for t, count in log] for log in theirs["logs"]]
    their_rows = [(ours(t), index, Reading(*values)) for t, index, values in theirs["samples"]]
    up = down = 0
    for load in loads:
        if isinstance(load, Sender):
            own = [(t, reading) for t, index, reading in rows if index == up]
            yield Flow(load.name, logs[up], own, load.failure)
            up += 1
        elif isinstance(load, Receiver):
            own = [(t, reading) for t, index, reading in their_rows if index == down]
            yield Flow(load.name, list(load.log), own, load.failure)
            down += 1


def _streams(
    order: Order,
    source: DatagramSender | None,
    sink: DatagramReceiver,
    theirs: dict[str, Any],
    clocks: Clocks | None,
) -> Iterator[Stream]:
    if order.udp_bps is None:
        return
    if source is not None:
        yield _stream("up0", source.record(), theirs["sink"], clocks, is_theirs=True)
    if theirs["source"] is not None:
        yield _stream("down0", theirs["source"], sink.record(), clocks, is_theirs=False)


def _stream(
    name: str,
    sent: dict[str, Any],
    received: dict[str, Any],
    clocks: Clocks | None,
    *,
    is_theirs: bool,
) -> Stream:
    arrived, delays = list(received["arrived_ns"]), list(received["transits_ns"])
    if clocks is not None:
        if is_theirs:
            arrived = [clocks.to_client(t) for t in arrived]
        sign = -1 if is_theirs else 1
        delays = [
            round(delay + sign * clocks.offset_at(t))
            for t, delay in zip(arrived, delays, strict=True)
        ]
    counts = {
        name: int(received[name])
        for name in ("received", "bytes", "reordered", "dropped", "jitter_ns")
    }
    return Stream(
        name,
        int(sent["sent"]),
        int(sent["refused"]),
        **counts,
        arrived_ns=arrived,
        delays_ns=delays,
    )


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
