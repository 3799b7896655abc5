"""One client of a server: what it may request, and its run in progress."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from weir import _native
from weir.base.errors import InputError
from weir.probes import probes, tcp_info, wire
from weir.probes.channel import Channel, ChannelError, Message, SilentError
from weir.probes.datagrams import DatagramLoad
from weir.probes.load import Load, Point, Receiver, Sampler, Sender
from weir.probes.own import LEAST_MSS, MOST_MSS, SAMPLE_S, OwnLoad, OwnSpec
from weir.probes.wire import Arrival, Datagram

MOST_STREAMS = 64
TICK_S = 1.0
"""A client sends a message at least this often during a run."""
SILENCE_S = 10.0
"""A run of a client that was silent for this long ends. It is long, since the control connection
shares the path with the load."""
_BETWEEN_S = 60.0
_LONGEST_SESSION_S = 3600.0
_AROUND_S = 30.0
"""Time around a load: for probes of the idle path, connections, and the end."""
_CONNECT_S = 10.0
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server allows, which it enforces and sends to each client."""

    rate_bps: float | None = None
    """Of all flows of a run in one direction."""
    time_s: float = 60.0
    """The longest load."""
    clients: int = 1

    def as_json(self) -> Message:
        """For the client."""
        return {"rate_bps": self.rate_bps, "time_s": self.time_s, "streams": MOST_STREAMS}


@dataclass(frozen=True, slots=True)
class Request:
    """What a client requests of a run, checked."""

    control: str
    up: int
    """Flows from the client, and to it."""
    down: int
    duration_s: float
    udp_bps: float | None
    """Rate of datagrams in place of TCP."""
    stack: str | None
    """Our transport in place of TCP."""
    mss: int

    @property
    def own(self) -> OwnSpec | None:
        """The flows of our transport, if it is such a run."""
        if self.stack is None:
            return None
        return OwnSpec(self.stack, self.mss, self.up, self.down, self.duration_s)

    @property
    def is_over_udp(self) -> bool:
        """Whether the load has a UDP socket of its own, in place of connections of TCP."""
        return self.udp_bps is not None or self.stack is not None

    @classmethod
    def read(cls, message: Message, limits: Limits) -> Request:
        """Checks a message.

        Raises:
            ChannelError: it is no such request, or beyond the limits.
        """
        try:
            read = cls(
                str(message["control"]),
                int(message["up"]),
                int(message["down"]),
                float(message["duration_s"]),
                None if message["udp_bps"] is None else float(message["udp_bps"]),
                None if message["stack"] is None else str(message["stack"]),
                int(message["mss"]),
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            raise ChannelError("the request of a run lacks a value, or has a wrong one") from None
        for name, value, most in (
            ("streams up", read.up, MOST_STREAMS),
            ("streams down", read.down, MOST_STREAMS),
            ("seconds", read.duration_s, limits.time_s),
        ):
            if not 0 <= value <= most:
                raise ChannelError(f"{value:g} {name}: the server allows at most {most:g}")
        most_bps = float("inf") if limits.rate_bps is None else limits.rate_bps
        if read.udp_bps is not None and not 1000 <= read.udp_bps <= most_bps:
            raise ChannelError(
                f"a rate of {read.udp_bps:g} bit/s: the server allows at most {most_bps:g}"
            )
        if (own := read.own) is not None:
            if not LEAST_MSS <= own.mss <= MOST_MSS or not own.up + own.down:
                raise ChannelError(f"segments of {own.mss} bytes in {own.up} + {own.down} flows")
            try:
                own.scenario(limits.rate_bps)
            except InputError as error:
                raise ChannelError(str(error)) from None
        elif read.udp_bps is None and read.control not in tcp_info.controls():
            raise ChannelError(f"the server's kernel has no congestion control {read.control[:16]}")
        return read


class _DroppedError(Exception):
    """The client gave a run up."""


class Run:
    """The server's part of one run."""

    def __init__(self, request: Request, host: Any, udp: socket.socket, limits: Limits) -> None:
        self.token = secrets.token_bytes(wire.TOKEN_BYTES)
        self.host = host
        """The host of the client, the only one that takes part."""
        self._request, self._udp, self._limits = request, udp, limits
        self._loads: dict[int, Load] = {}
        self._lock, self._all = threading.Lock(), threading.Event()
        self._client: wire.Address | None = None
        self._sampler: Sampler | None = None
        self._path_load: DatagramLoad | OwnLoad | None = None
        self._marks: dict[int, dict[int, int]] = {}
        """By mark that a client sent, how often each mark arrived."""
        self._ended = False
        self.deadline = time.monotonic() + request.duration_s + _AROUND_S
        if not request.up + request.down:
            self._all.set()

    def attach(self, connection: socket.socket, flow: int) -> bool:
        """Makes a connection the one of a flow; False if it is not wanted."""
        request = self._request
        total = 0 if request.is_over_udp else request.up + request.down
        with self._lock:
            if self._ended or not 0 <= flow < total or flow in self._loads:
                return False
            load: Load
            try:
                if flow < request.up:
                    rate = self._share(request.up)
                    load = Receiver(connection, f"up{flow}", rate_bps=rate, asks=False)
                else:
                    load = Sender(
                        connection,
                        f"down{flow - request.up}",
                        request.control,
                        rate_bps=self._share(request.down),
                        asks=False,
                    )
            except OSError:
                return False
            self._loads[flow] = load
            if len(self._loads) == total:
                self._all.set()
        return True

    def wait_for_flows(self, wait_s: float) -> bool:
        """Whether all flows are connected in time, and UDP has arrived where it is the load."""
        return self._all.wait(wait_s)

    def start(self) -> None:
        """Starts the load.

        Raises:
            ChannelError: it is not possible.
        """
        senders = [load for load in self._loads.values() if isinstance(load, Sender)]
        self._sampler = Sampler(senders, SAMPLE_S)
        for load in self._loads.values():
            load.start()
        self._sampler.start()
        if self._request.is_over_udp and self._client is not None:
            try:
                self._path_load = self._path_loaded(self._client)
            except (InputError, OSError) as error:
                raise ChannelError(f"the load could not begin: {error}") from None
            self._path_load.start()

    def on_datagram(self, datagram: Datagram, arrival: Arrival) -> None:
        """Handles a datagram with this run's token."""
        if (
            self._ended
            or wire.host_of(arrival.source) != self.host
            or time.monotonic() > self.deadline
            or len(arrival.data) != wire.PROBE_BYTES
            or datagram.kind not in (wire.PROBE, wire.OPEN, wire.MARK)
        ):
            return
        if datagram.kind == wire.OPEN and self._request.is_over_udp:
            self._client = arrival.source
            self._all.set()
        if datagram.kind == wire.MARK:
            seen = self._marks.setdefault(datagram.mark, {})
            seen[arrival.mark] = seen.get(arrival.mark, 0) + 1
        probes.answer(self._udp, datagram, arrival)

    def end(self) -> None:
        """Ends the run; what was measured stays."""
        with self._lock:
            self._ended = True
        self.end_load()
        if isinstance(self._path_load, DatagramLoad):
            self._path_load.record()

    def end_load(self) -> None:
        """Ends the load; probes are still answered, and datagrams on their way received."""
        if self._path_load is not None:
            self._path_load.end()
        if self._sampler is not None:
            self._sampler.end()
        for load in self._loads.values():
            load.end()

    def record(self) -> Message:
        """What was measured at this end."""
        flows = dict(sorted(self._loads.items()))
        logs = [list(load.log) for load in flows.values() if isinstance(load, Receiver)]
        samples = [] if self._sampler is None else self._sampler.rows
        load, failures, limits = self._path_load, list[str | None](), list[Any]()
        dropped = refused = 0
        latencies = list[Point]()
        if isinstance(load, OwnLoad):
            if load.failure is not None:
                raise ChannelError(load.failure)
            logs, samples, failures = load.logs(), load.samples(), load.failures()
            limits, dropped, refused = load.limits(), load.dropped(), load.refused()
            latencies = load.latencies()
        elif self._sampler is not None:
            limits = self._sampler.policers(self._request.up)
        return {
            "logs": logs,
            "samples": [list(row) for row in samples],
            "failures": failures,
            "limits": limits,
            "latencies": latencies,
            "dropped": dropped,
            "refused": refused,
            "datagrams": load.record() if isinstance(load, DatagramLoad) else None,
            "marks": list(self._marks.items()),
        }

    def _path_loaded(self, client: wire.Address) -> DatagramLoad | OwnLoad:
        """The load over a socket that takes datagrams from an address that has proved itself."""
        own = wire.as_text(self._udp.getsockname())
        path = _native.PathSocket(wire.as_text(client), own)
        request = self._request
        if request.own is not None:
            return OwnLoad(request.own, "server", path, self._limits.rate_bps)
        return DatagramLoad(path, self.token, request.udp_bps if request.down else None)

    def _share(self, flows: int) -> float | None:
        return None if self._limits.rate_bps is None else self._limits.rate_bps / flows


@dataclass(slots=True, eq=False)
class Session:
    """A client that has proved itself."""

    channel: Channel
    udp: socket.socket
    limits: Limits
    register: Callable[[Run], None]
    """Makes a run known to those who take in connections and datagrams."""
    unregister: Callable[[Run], None]
    runs: int = 0
    bytes: int = 0
    _idle_since: float | None = field(default_factory=time.monotonic)
    """Since when no run is in progress."""

    def idle_s(self) -> float:
        """For how long no run has been in progress."""
        since = self._idle_since
        return 0.0 if since is None else time.monotonic() - since

    def serve(self) -> None:
        """Answers requests until the client says that it has ended.

        Raises:
            ChannelError: the connection broke, or a request is not allowed.
        """
        deadline = time.monotonic() + _LONGEST_SESSION_S
        self.channel.send(controls=tcp_info.controls(), limits=self.limits.as_json())
        while time.monotonic() < deadline:
            message = self.channel.receive(_BETWEEN_S)
            if message.get("do") == "bye":
                return
            if message.get("do") != "run":
                continue  # it lets us know that it is there
            try:
                request = Request.read(message, self.limits)
            except ChannelError as error:
                self.channel.send(error=str(error))
                raise
            self._run(request)

    def _run(self, request: Request) -> None:
        run = Run(request, wire.host_of(self.channel.peer), self.udp, self.limits)
        self.register(run)
        self._idle_since = None
        try:
            self._measure(run, request)
        except _DroppedError:
            pass  # the client could not take part, and may request another run
        finally:
            run.end()
            self.unregister(run)
            self._idle_since = time.monotonic()

    def _measure(self, run: Run, request: Request) -> None:
        self.channel.send(token=run.token.hex())
        self._until(run, "go")
        if not run.wait_for_flows(_CONNECT_S):
            raise ChannelError("the connections of its flows are missing")
        run.start()
        self.channel.send(started=True)
        started = time.monotonic()
        self._until(run, "stop", started + request.duration_s + 1.0)
        run.end_load()
        self._until(run, "end")
        run.end()
        record = run.record()
        self.channel.send(record=record)
        self.runs += 1
        self.bytes += sum(log[-1][1] for log in record["logs"] if log)
        if record["datagrams"] is not None and record["datagrams"]["received"] is not None:
            self.bytes += record["datagrams"]["received"]["bytes"]

    def _until(self, run: Run, word: str, stop: float | None = None) -> None:
        """Waits for a message of the client, until the end of the run at most.

        At the time `stop` the load ends, whether or not the client has said so.
        """
        heard = time.monotonic()
        while (now := time.monotonic()) < run.deadline:
            if stop is not None and now >= stop:
                return
            try:
                message = self.channel.receive(_POLL_S)
            except SilentError:
                if time.monotonic() - heard > SILENCE_S:
                    raise
                continue
            heard = time.monotonic()
            if message.get("do") == "drop":
                raise _DroppedError
            if message.get("do") == word:
                return
        raise ChannelError("a run took too long")
