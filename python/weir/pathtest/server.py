"""`weir test --server`: the end of a path test that waits for clients.

One port, for TCP and UDP. A connection has 5 s for its first line, and nothing is answered before
it is one that we know. UDP is answered only if it has the token of a run, which the control
connection gave out, and comes from the host of that connection. An answer is as long as its probe.
"""

from __future__ import annotations

import contextlib
import re
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Self

from weir.base.errors import InputError
from weir.pathtest.places import Places
from weir.pathtest.session import Limits, Run, Session
from weir.probes import channel, tcp_info, wire
from weir.probes.channel import ChannelError

Log = Callable[[str], None]

_IDLE_S = 10.0
"""A client that requests no run for so long makes space for another one."""
_TURN_S = 0.2
_DATAGRAM_BYTES = 2048
_BACKLOG = 64
_SWITCH_S = 0.0005
"""Threads take turns this often, so that a probe does not wait 5 ms for a thread with data."""


class Server:
    """A server; a context manager that listens from its start to its end."""

    def __init__(self, listen: str, key: bytes | None, limits: Limits, log: Log) -> None:
        """Listens at an address.

        Raises:
            InputError: that is not possible, or this is no Linux.
        """
        _ = tcp_info.controls()
        self._key, self._limits, self._log = key, limits, log
        self._tcp, self._udp = _listening(listen)
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._runs: dict[bytes, Run] = {}
        self._places = Places()
        self._sessions: list[Session] = []
        self._threads = [
            threading.Thread(target=work, name="serve", daemon=True)
            for work in (self._accept, self._take_datagrams)
        ]

    @property
    def address(self) -> wire.Address:
        """Where it listens."""
        return tuple(self._tcp.getsockname())

    def __enter__(self) -> Self:
        sys.setswitchinterval(_SWITCH_S)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.end()
        self._tcp.close()
        self._udp.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                connection, source = self._tcp.accept()
            except TimeoutError:
                continue
            except OSError:  # out of file descriptors, or the peer is gone again
                self._ended.wait(_TURN_S)
                continue
            self._begin(connection, source)

    def _begin(self, connection: socket.socket, source: wire.Address) -> None:
        """Starts the thread of a connection."""
        place = self._places.take(connection, source)
        work = threading.Thread(target=self._greet, args=(connection, source, place), daemon=True)
        try:
            work.start()
        except RuntimeError:  # the system has no more threads
            self._places.leave(place)
            connection.close()

    def _greet(self, connection: socket.socket, source: wire.Address, place: int) -> None:
        """Finds out what a connection is for."""
        is_kept = False
        try:
            words = _first_line(connection).split()
            if words == wire.CONTROL_LINE.split():
                self._control(connection, source, place)
            elif words[:1] == [wire.LOAD] and len(words) == 3:
                run = self._run_of(words[1], source)
                is_kept = (
                    run is not None and words[2].isdigit() and run.attach(connection, int(words[2]))
                )
            elif words[:1] == [wire.ECHO] and len(words) == 2 and self._run_of(words[1], source):
                connection.sendall(b"\n")
        except (OSError, ChannelError, ValueError):
            pass  # an unknown peer; its connection is closed
        finally:
            self._places.leave(place)
            if not is_kept:
                connection.close()

    def _control(self, connection: socket.socket, source: wire.Address, place: int) -> None:
        host = wire.host_of(source)
        try:
            proved = channel.accept(connection, self._key)
        except ChannelError as error:
            self._log(f"{host}: refused: {error}")
            return
        self._places.leave(place)
        began, session = (
            time.monotonic(),
            Session(proved, self._udp, self._limits, self._register, self._unregister),
        )
        if not self._admit(session):
            self._log(f"{host}: refused: {self._limits.clients} clients are here (--max-clients)")
            proved.send(error="it is busy with other clients (--max-clients); try again later")
            return
        self._log(f"{host}: begins")
        how = "ended"
        try:
            session.serve()
        except ChannelError as error:
            how = f"ended early: {error}"
        finally:
            with self._lock, contextlib.suppress(ValueError):  # it has made space for another
                self._sessions.remove(session)
            spent = f"{session.runs} runs, {session.bytes / 1e6:.1f} MB received"
            self._log(f"{host}: {how}; {spent}, {time.monotonic() - began:.0f} s")

    def _admit(self, session: Session) -> bool:
        """Whether there is a place for a client, perhaps that of one that does nothing with it."""
        with self._lock:
            if len(self._sessions) >= self._limits.clients:
                idle = max(self._sessions, key=Session.idle_s, default=None)
                if idle is None or idle.idle_s() < _IDLE_S:
                    return False
                idle.channel.end()
                self._sessions.remove(idle)
            self._sessions.append(session)
        return True

    def _run_of(self, token: bytes, source: wire.Address) -> Run | None:
        with self._lock:
            run = self._runs.get(bytes.fromhex(token.decode("ascii")))
        return run if run is not None and run.host == wire.host_of(source) else None

    def _register(self, run: Run) -> None:
        with self._lock:
            self._runs[run.token] = run

    def _unregister(self, run: Run) -> None:
        with self._lock:
            self._runs.pop(run.token, None)

    def _take_datagrams(self) -> None:
        while not self._ended.is_set():
            try:
                arrival = wire.receive(self._udp, _DATAGRAM_BYTES)
            except OSError:
                continue
            datagram = wire.Datagram.read(arrival.data)
            if datagram is None:
                continue
            run = self._runs.get(datagram.token)
            if run is not None:
                run.on_datagram(datagram, arrival)


def _first_line(connection: socket.socket) -> bytes:
    """Reads the first line and nothing after it."""
    deadline = time.monotonic() + channel.HANDSHAKE_S
    line = b""
    while not line.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or len(line) >= wire.LINE_BYTES:
            raise ChannelError("no first line")
        connection.settimeout(left)
        new = connection.recv(1)
        if not new:
            raise ChannelError("no first line")
        line += new
    return line


def _listening(listen: str) -> tuple[socket.socket, socket.socket]:
    host, port = split(listen, "--listen")
    hosts = [host] if host else ["::", "0.0.0.0"]  # noqa: S104 – all addresses, also without IPv6
    reason = OSError()
    for name in hosts:
        try:
            return _bound(name, port)
        except OSError as error:
            reason = error
    raise InputError(f"--listen {listen}: {reason.strerror or reason}")


def _bound(host: str, port: int) -> tuple[socket.socket, socket.socket]:
    with contextlib.ExitStack() as stack:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        tcp = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            tcp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        tcp.bind(address)
        tcp.listen(_BACKLOG)
        tcp.settimeout(_TURN_S)
        udp = stack.enter_context(wire.udp_socket(tcp.getsockname(), bind=True))
        udp.settimeout(_TURN_S)
        stack.pop_all()
    return tcp, udp


def split(address: str, option: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`; of a host alone, the default port.

    Raises:
        InputError: it is something else.
    """
    if "://" in address:
        raise InputError(f"{option} {address}: write it as HOST[:PORT]")
    host, colon, port = address.rpartition(":")
    if not colon or (address.startswith("[") and address.endswith("]")):
        host, port = address, str(wire.PORT)
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise InputError(
            f"{option} {address}: write an IPv6 address in brackets: [::1]:{wire.PORT}"
        )
    if not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65_535:
        raise InputError(f"{option} {address}: a port is a number from 0 to 65535")
    return host.strip("[]"), int(port)
