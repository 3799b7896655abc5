"""One host, as the controller sees it: an ssh connection, requests, its clock."""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import IO, Any, TypeVar, cast

from weir.base.errors import InputError, WeirError
from weir.base.plain import plain
from weir.hosts.agent import LONGEST_LINE, PROTOCOL
from weir.hosts.listed import Host
from weir.pathtest.ssh import NOT_FOUND, client_command

SERVE = ("test", "--server", "--stdio")
"""What is started there, after the program's name."""

EXCHANGES = 30
"""Exchanges of clocks before and after a run."""

_HELLO_S, _ANSWER_S = 20.0, 10.0
_END_S = 5.0
_LONGEST_QUOTE = 300
_MOST_LINES = 4
"""Lines of a host that wait for us: it answers one request at a time."""

T = TypeVar("T")


class HostError(WeirError):
    """A host could not be reached, or did not do its part."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Times of a request about the clock in ns, each on the clock of the end that took it."""

    sent: int
    received: int
    answered: int
    returned: int

    @property
    def rtt_ns(self) -> int:
        """The round trip, without the time that the host took."""
        return (self.returned - self.sent) - (self.answered - self.received)

    @property
    def offset_ns(self) -> int:
        """The host's clock less ours, wrong by at most half of the round trip (RFC 5905 §8)."""
        return ((self.received - self.sent) + (self.answered - self.returned)) // 2


def best(exchanges: Sequence[Exchange]) -> Exchange:
    """The exchange of the smallest round trip."""
    return min(exchanges, key=lambda exchange: exchange.rtt_ns)


class Machine:
    """A host with Weir started on it, until it is closed."""

    def __init__(self, host: Host) -> None:
        """Starts Weir there.

        Raises:
            InputError: there is no ssh client.
        """
        self.host = host
        self.exchanges: list[Exchange] = []
        self.has_ended = False
        remote_command = [*shlex.split(host.program), *SERVE]
        command = client_command(host.ssh, f"ssh {host.ssh_options}", remote_command)
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError as error:
            raise InputError(f"host '{host.name}': {command[0]}: {error.strerror}") from None
        self._lines: Queue[tuple[bytes, int]] = Queue(_MOST_LINES)
        self._last_error = ""
        self._streams = [cast("IO[bytes]", s) for s in (self._process.stdout, self._process.stderr)]
        self._threads = [
            threading.Thread(target=work, args=(stream,), name=f"host {host.name}", daemon=True)
            for work, stream in zip((self._read, self._read_errors), self._streams, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def hello(self) -> None:
        """Checks that Weir of this version answers there.

        Raises:
            HostError: no Weir of this version answers there.
        """
        answer = self.ask(_HELLO_S, do="hello")
        if answer.get("protocol") != PROTOCOL:
            version = plain(str(answer.get("version")))
            raise self._error(
                f"it has Weir {version}, which has another protocol; install this one"
            )

    def field(self, answer: dict[str, Any], key: str, kind: type[T]) -> T:
        """A value of an answer.

        Raises:
            HostError: it is missing, or of another kind.
        """
        value = answer.get(key)
        if not isinstance(value, kind):
            raise self.another_protocol()
        return value

    def another_protocol(self) -> HostError:
        """The error of an answer that no Weir of this version gives."""
        return self._error("it answers in another protocol")

    def ask(self, wait_s: float = _ANSWER_S, **request: Any) -> dict[str, Any]:
        """The answer to a request.

        Raises:
            HostError: there is none, or the host refuses.
        """
        answer = self._exchange(request, wait_s)[0]
        if "error" in answer:
            raise self._error(str(answer["error"]))
        return answer

    def exchange_clocks(self) -> Exchange:
        """Exchanges times with the host once; also shows it that we are there."""
        sent = time.monotonic_ns()
        answer, returned = self._exchange({"do": "clock"}, _ANSWER_S)
        try:
            exchange = Exchange(sent, int(answer["received"]), int(answer["answered"]), returned)
            self.has_ended = bool(answer["ended"])
        except (KeyError, TypeError, ValueError):
            raise self.another_protocol() from None
        self.exchanges.append(exchange)
        return exchange

    def clock(self) -> Exchange:
        """The best of some exchanges in a row."""
        return best([self.exchange_clocks() for _ in range(EXCHANGES)])

    def close(self) -> None:
        """Ends Weir there, and ssh."""
        with suppress(OSError):
            self._stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            self._process.wait()
        for thread, stream in zip(self._threads, self._streams, strict=True):
            thread.join()
            stream.close()

    @property
    def _stdin(self) -> IO[bytes]:
        return cast("IO[bytes]", self._process.stdin)

    def _exchange(self, request: dict[str, Any], wait_s: float) -> tuple[dict[str, Any], int]:
        try:
            self._stdin.write(json.dumps(request, separators=(",", ":")).encode() + b"\n")
            self._stdin.flush()
        except OSError:
            raise self._gone() from None
        try:
            line, returned = self._lines.get(timeout=wait_s)
        except Empty:
            raise self._error(f"no answer in {wait_s:g} s") from None
        if not line:
            raise self._gone()
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise self.another_protocol()
        return answer, returned

    def _read(self, stream: IO[bytes]) -> None:
        """Keeps lines until one is too long or cut off, or the host says more than it was asked."""
        while (line := stream.readline(LONGEST_LINE)).endswith(b"\n"):
            try:
                self._lines.put_nowait((line, time.monotonic_ns()))
            except Full:
                break
        with suppress(Empty):
            while True:
                self._lines.get_nowait()
        self._lines.put((b"", time.monotonic_ns()))

    def _read_errors(self, stream: IO[bytes]) -> None:
        while line := stream.readline(_LONGEST_QUOTE):
            self._last_error = line.decode(errors="replace").strip() or self._last_error

    def _gone(self) -> HostError:
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            return self._error("it closed the connection")
        if code == NOT_FOUND:
            program = self.host.program
            return self._error(f"there is no {program} there; name it with program in the list")
        self._threads[-1].join(_END_S)  # reads the reason
        return self._error(self._last_error or f"ssh ended with exit code {code}")

    def _error(self, text: str) -> HostError:
        short = plain(" ".join(text[:_LONGEST_QUOTE].split()))
        return HostError(f"host '{self.host.name}' ({self.host.ssh}): {short}")
