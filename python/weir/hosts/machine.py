"""One host, as the controller sees it: an ssh connection, requests, its clock."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Queue
from typing import IO, Any, cast

from weir.errors import InputError, WeirError
from weir.hosts.agent import PROTOCOL
from weir.hosts.listed import Host
from weir.pathtest.ssh import NOT_FOUND, client_command
from weir.plain import plain

SERVE = ("serve", "--stdio")
"""What is started there, after the program's name."""

EXCHANGES = 30
"""Exchanges of clocks before and after a run."""

_HELLO_S, _ANSWER_S = 20.0, 10.0
_END_S = 5.0
_LONGEST_QUOTE = 300


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

    def __init__(self, host: Host, words: Sequence[str]) -> None:
        """Starts Weir there; `words` is the program with its arguments.

        Raises:
            InputError: there is no ssh client.
        """
        self.host = host
        self.exchanges: list[Exchange] = []
        self.has_ended = False
        command = client_command(host.ssh, f"ssh {host.ssh_options}", [*words, *SERVE])
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError as error:
            raise InputError(f"host '{host.name}': {command[0]}: {error.strerror}") from None
        self._lines: Queue[tuple[bytes, int]] = Queue()
        self._said: list[str] = []
        self._streams = [cast("IO[bytes]", s) for s in (self._process.stdout, self._process.stderr)]
        self._threads = [
            threading.Thread(target=work, args=(stream,), name=f"host {host.name}", daemon=True)
            for work, stream in zip((self._read, self._read_errors), self._streams, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def hello(self) -> list[str]:
        """The congestion controls that the host has.

        Raises:
            HostError: no Weir of this version answers there.
        """
        answer = self.ask(_HELLO_S, do="hello")
        if answer.get("protocol") != PROTOCOL:
            version = plain(str(answer.get("version")))
            raise self._error(
                f"it has Weir {version}, which has another protocol; install this one"
            )
        return [str(name) for name in answer["controls"]]

    def ask(self, wait_s: float = _ANSWER_S, **request: Any) -> dict[str, Any]:
        """The answer to a request.

        Raises:
            HostError: there is none, or the host refuses.
        """
        answer = self._exchange(request, wait_s)[0]
        if "error" in answer:
            raise self._error(str(answer["error"]))
        return answer

    def look_at_clock(self) -> Exchange:
        """Exchanges times with the host once; also shows it that we are there."""
        sent = time.monotonic_ns()
        answer, returned = self._exchange({"do": "clock"}, _ANSWER_S)
        try:
            exchange = Exchange(sent, int(answer["received"]), int(answer["answered"]), returned)
            self.has_ended = bool(answer["ended"])
        except (KeyError, TypeError, ValueError):
            raise self._error("it answers in another protocol") from None
        self.exchanges.append(exchange)
        return exchange

    def clock(self) -> Exchange:
        """The best of some exchanges in a row."""
        return best([self.look_at_clock() for _ in range(EXCHANGES)])

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
            raise self._error("it answers in another protocol")
        return answer, returned

    def _read(self, stream: IO[bytes]) -> None:
        for line in stream:
            self._lines.put((line, time.monotonic_ns()))
        self._lines.put((b"", time.monotonic_ns()))

    def _read_errors(self, stream: IO[bytes]) -> None:
        for line in stream:
            text = line.decode(errors="replace").strip()
            self._said = [*self._said, text][-1:] if text else self._said

    def _gone(self) -> HostError:
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            return self._error("it closed the connection")
        if code == NOT_FOUND:
            program = self.host.program
            return self._error(f"there is no {program} there; name it with program in the file")
        return self._error(self._said[-1] if self._said else f"ssh ended with exit code {code}")

    def _error(self, text: str) -> HostError:
        short = plain(" ".join(text[:_LONGEST_QUOTE].split()))
        return HostError(f"host '{self.host.name}' ({self.host.ssh}): {short}")
