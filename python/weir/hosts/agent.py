"""The end of a run on one host: `weir test --server --stdio`, started over ssh and ended with it.

It answers requests on standard input, a line of JSON each, by one line on standard output. A run
stops when the controller is silent for 1.5 s, and when standard input ends. A request holds a
scenario, addresses and times: no command and no name of a file.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from weir import _native
from weir.base.errors import InputError
from weir.probes import tcp_info

PROTOCOL = 3
"""Rises when the two ends of different versions no longer understand each other."""
SILENCE_S = 1.5
"""A run stops after this time without a request: with all delays within 2 s."""

LONGEST_LINE = 64 << 20
"""Longest request and answer in bytes. A record is one line."""

_IDLE_S = 60.0
"""Without a run the process ends after this time without a request."""
_READ_BYTES = 1 << 16


class Agent:
    """Answers requests until there are no more."""

    def __init__(self) -> None:
        self._lines = _Lines(sys.stdin.fileno())
        self._run: _Run | None = None

    def serve(self) -> None:
        """Answers requests until the controller is gone."""
        try:
            while (line := self._lines.read(self._patience())) is not None:
                received = time.monotonic_ns()
                try:
                    answer = self._answer(json.loads(line), received)
                except (InputError, _native.ScenarioError, RuntimeError) as error:
                    answer = {"error": str(error).removeprefix("scenario: ")}
                except (KeyError, TypeError, ValueError) as error:
                    answer = {"error": f"no request of this version: {error}"}
                print(json.dumps(answer, separators=(",", ":")), flush=True)
        except BrokenPipeError:
            pass  # the controller is gone
        finally:
            if self._run is not None:
                self._run.stop()

    def _patience(self) -> float:
        is_running = self._run is not None and self._run.is_running
        return SILENCE_S if is_running else _IDLE_S

    def _answer(self, request: Mapping[str, Any], received: int) -> dict[str, Any]:
        match request["do"]:
            case "hello":
                return {"protocol": PROTOCOL, "version": _native.version()}
            case "clock":
                ended = self._run is not None and not self._run.is_running
                return {"received": received, "answered": time.monotonic_ns(), "ended": ended}
            case "prepare":
                if self._run is not None:
                    self._run.stop()
                self._run = _Run(request)
                return self._run.opened()
            case "start":
                self._current().start(int(request["at"]), request["peers"])
                return {}
            case "stop":
                self._current().stop()
                return {}
            case "record":
                return {"record": self._current().record()}
            case other:
                raise ValueError(f"{other!r}")

    def _current(self) -> _Run:
        if self._run is None:
            raise ValueError("nothing is prepared")
        return self._run


class _Run:
    """The part of this host in one run."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        scenario = _native.Scenario.from_json(request["scenario"])
        sends = {int(flow): address for flow, address in request["sends"].items()}
        self._part = _native.HostPart(
            scenario, request["seed"], sends, request["receives"], tcp_info.controls()
        )
        self._control = _native.RunControl()
        self._thread: threading.Thread | None = None
        self._outcome: str | Exception = RuntimeError("the run was not started")

    @property
    def is_running(self) -> bool:
        """Whether its flows may still send."""
        return self._thread is not None and self._thread.is_alive()

    def opened(self) -> dict[str, Any]:
        """Where its flows come from, and where they arrive."""
        return {"sources": self._part.sources(), "ports": self._part.ports()}

    def start(self, at: int, peers: Mapping[str, str]) -> None:
        """Starts the run at a time of the monotonic clock."""
        ends = {int(flow): address for flow, address in peers.items()}
        self._thread = threading.Thread(target=self._work, args=(at, ends), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the run at once; what was measured stays."""
        self._control.stop()
        if self._thread is not None:
            self._thread.join()

    def record(self) -> str:
        """What was measured.

        Raises:
            RuntimeError: the run failed.
        """
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def _work(self, at: int, peers: dict[int, str]) -> None:
        try:
            self._outcome = self._part.run(at, peers, self._control)
        except (RuntimeError, ValueError) as error:
            self._outcome = RuntimeError(str(error))


class _Lines:
    """Lines of a file descriptor, each with a limit of its length and time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._read = descriptor, bytearray()

    def read(self, wait_s: float) -> bytes | None:
        """The next line; None if there is none in time, or no more."""
        deadline = time.monotonic() + wait_s
        searched = 0
        while (end := self._read.find(b"\n", searched)) < 0:
            searched = len(self._read)
            left = deadline - time.monotonic()
            ready = select.select([self._descriptor], [], [], max(0.0, left))[0]
            chunk = os.read(self._descriptor, _READ_BYTES) if ready else b""
            if not chunk or searched > LONGEST_LINE:
                return None
            self._read += chunk
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        return line
