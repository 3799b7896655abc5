"""The load of a path test: one connection of the kernel's TCP, in one direction.

The data is zeros in chunks. A chunk begins with a number that is zero, or that of a request which
the other end made on the same connection: the time until the answer arrives is the latency that an
application sees which shares its connection with other data (`http_l` of responsiveness).
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence

from weir.probes import policing, tcp_info
from weir.probes.policing import Counters
from weir.probes.tcp_info import Reading
from weir.probes.worker import Worker

CHUNK = 16 << 10
"""Bytes of a chunk: a frame of HTTP/2 is as long at most (RFC 9113 §4.2)."""

_NUMBER = struct.Struct("!Q")
_TURN_S = 0.25
"""A blocked call returns after this time, to see whether the load has ended."""
_UNSENT_BYTES = 64 << 10
"""Data that waits in the sender's own buffer: more would only delay requests."""
_BUFFER_BYTES = 1 << 20
LOG_NS = 5_000_000
_BURST_S = 0.1
_FINE = 8
_STEP_S = 0.02
_NO_LINGER = struct.pack("ii", 1, 0)

Point = tuple[int, int]
"""Monotonic time in ns, and bytes so far."""


class Load:
    """One end of a loaded connection."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self.connection, self.name = connection, name
        self.failure: str | None = None
        self._ended = threading.Event()
        self._asked: dict[int, int] = {}
        self._number = 0
        self.latencies_ns: list[Point] = []
        """When a request was made on this connection, and the time until its answer."""
        connection.settimeout(_TURN_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        """Starts its threads."""
        for work in self._work():
            threading.Thread(target=work, name=self.name, daemon=True).start()

    def end(self) -> None:
        """Ends it at once: what is still in the buffers is discarded, so that the path is free."""
        self._ended.set()
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        with contextlib.suppress(OSError):
            self.connection.close()

    def request(self) -> None:
        """Makes a request on this connection, unless one is unanswered."""
        if self._asked or self._ended.is_set():
            return
        self._number += 1
        self._asked[self._number] = time.monotonic_ns()
        self._ask(self._number)

    def _work(self) -> Sequence[Callable[[], None]]:
        raise NotImplementedError

    def _ask(self, number: int) -> None:
        raise NotImplementedError

    def _answered(self, number: int) -> None:
        began = self._asked.pop(number, None)
        if began is not None:
            self.latencies_ns.append((began, time.monotonic_ns() - began))

    def _write_number(self, number: int) -> None:
        with contextlib.suppress(OSError):
            self.connection.send(_NUMBER.pack(number))

    def _fail(self, error: OSError) -> None:
        if not self._ended.is_set():
            self.failure = error.strerror or str(error)


class Sender(Load):
    """Sends until it is ended. `asks` says that requests are made here, and not at the receiver."""

    def __init__(
        self,
        connection: socket.socket,
        name: str,
        control: str,
        *,
        rate_bps: float | None,
        asks: bool,
    ) -> None:
        super().__init__(connection, name)
        self._asks, self._pending = asks, 0
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        if rate_bps is not None:
            limit = min(int(rate_bps / 8), (1 << 32) - 1)
            connection.setsockopt(socket.SOL_SOCKET, _MAX_PACING_RATE, limit)

    def read(self) -> Reading | None:
        """What the kernel reports of it; None when it has ended."""
        try:
            return tcp_info.read(self.connection)
        except OSError:
            return None

    def counters(self) -> Counters | None:
        """What shows a policer; None when it has ended."""
        try:
            return tcp_info.counters(self.connection)
        except OSError:
            return None

    @property
    def mss(self) -> int:
        """Bytes of data in a segment; 0 when it has ended."""
        try:
            return self.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        except OSError:
            return 0

    def _work(self) -> Sequence[Callable[[], None]]:
        return self._send, self._read_numbers

    def _ask(self, number: int) -> None:
        self._pending = number

    def _send(self) -> None:
        chunk = bytearray(CHUNK)
        view = memoryview(chunk)
        try:
            while not self._ended.is_set():
                number, self._pending = self._pending, 0
                _NUMBER.pack_into(chunk, 0, number)
                at = 0
                while at < CHUNK and not self._ended.is_set():
                    with contextlib.suppress(TimeoutError):
                        at += self.connection.send(view[at:])
        except OSError as error:
            self._fail(error)

    def _read_numbers(self) -> None:
        read = b""
        try:
            while not self._ended.is_set():
                with contextlib.suppress(TimeoutError):
                    new = self.connection.recv(_NUMBER.size - len(read))
                    if not new:
                        return
                    read += new
                if len(read) == _NUMBER.size:
                    (number,) = _NUMBER.unpack(read)
                    read = b""
                    if self._asks:
                        self._answered(number)
                    else:
                        self._pending = number
        except OSError as error:
            self._fail(error)


class Receiver(Load):
    """Counts what arrives. `asks` says that requests are made here, and not at the sender."""

    def __init__(
        self, connection: socket.socket, name: str, *, rate_bps: float | None, asks: bool
    ) -> None:
        super().__init__(connection, name)
        self._asks, self._rate_bps = asks, rate_bps
        self._offset, self._head = 0, b""
        self.log: list[Point] = []
        """Bytes received so far, every few milliseconds."""
        self.bytes = 0

    def _work(self) -> Sequence[Callable[[], None]]:
        return (self._receive,)

    def _ask(self, number: int) -> None:
        self._write_number(number)

    def _receive(self) -> None:
        size = _BUFFER_BYTES
        if self._rate_bps is not None:  # small steps, so that the rate is even
            size = max(CHUNK, min(size, int(self._rate_bps / 8 * _STEP_S)))
        buffer = memoryview(bytearray(size))
        began = time.monotonic_ns()
        self.log.append((began, 0))
        try:
            while not self._ended.is_set():
                with contextlib.suppress(TimeoutError):
                    count = self.connection.recv_into(buffer)
                    if count == 0:
                        return
                    self._take(buffer[:count])
                    self._keep_to_rate(began)
        except OSError as error:
            self._fail(error)
        finally:
            self.log.append((time.monotonic_ns(), self.bytes))

    def _take(self, data: memoryview) -> None:
        self.bytes += len(data)
        now = time.monotonic_ns()
        if now - self.log[-1][0] >= LOG_NS:
            self.log.append((now, self.bytes))
        at = 0
        while at < len(data):
            if self._offset < _NUMBER.size:
                new = bytes(data[at : at + _NUMBER.size - self._offset])
                self._head += new
                step = len(new)
                if len(self._head) == _NUMBER.size:
                    (number,) = _NUMBER.unpack(self._head)
                    self._head = b""
                    if number:
                        (self._answered if self._asks else self._write_number)(number)
            else:
                step = min(CHUNK - self._offset, len(data) - at)
            self._offset = (self._offset + step) % CHUNK
            at += step

    def _keep_to_rate(self, began: int) -> None:
        """Reads no faster than the limit: TCP's flow control then slows the sender down."""
        if self._rate_bps is not None:
            allowed_s = self.bytes * 8 / self._rate_bps - _BURST_S
            early_s = allowed_s - (time.monotonic_ns() - began) / 1e9
            if early_s > 0:
                self._ended.wait(early_s)


class Sampler(Worker):
    """Reads what the kernel reports of senders, at intervals."""

    def __init__(self, senders: Sequence[Sender], interval_s: float) -> None:
        super().__init__("samples")
        self._senders, self._interval_s = senders, interval_s
        self._mss = [sender.mss for sender in senders]
        self._counters: list[list[Counters]] = [[] for _ in senders]
        self.rows: list[tuple[int, int, Reading]] = []
        """Time on the monotonic clock in ns, index of the sender, reading."""

    def policers(self, first: int) -> list[tuple[int, str, None, float, int, int]]:
        """Policers of senders, whose flows have numbers from `first`, as rows of `FlowLimit`."""
        found = []
        for index, (read, mss) in enumerate(zip(self._counters, self._mss, strict=True)):
            policer = policing.of_counters(read, mss)
            if policer is not None:
                found.append((first + index, "policer", None, *policer))
        return found

    def _run(self) -> None:
        # The last reading comes after the end. Many senders are counted less often.
        step_s = policing.COUNT_S * (1 + len(self._senders) // _FINE)
        next_s = time.monotonic()
        while True:
            is_last = self._ended.is_set()
            for sender, counters in zip(self._senders, self._counters, strict=True):
                if (counted := sender.counters()) is not None:
                    counters.append(counted)
            if is_last or time.monotonic() >= next_s:
                self._read()
                next_s += self._interval_s
            if is_last:
                return
            self._ended.wait(step_s)

    def _read(self) -> None:
        for index, sender in enumerate(self._senders):
            reading = sender.read()
            if reading is not None:
                self.rows.append((time.monotonic_ns(), index, reading))


_MAX_PACING_RATE = 47
"""`SO_MAX_PACING_RATE` of Linux, which Python does not name."""
