"""A process for one end of a transfer: reads a line of JSON, writes lines."""

from __future__ import annotations

import json
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from io import BufferedReader
from typing import IO, Any, cast

from weir.base.errors import WeirError
from weir.transfer.model import TIMEOUT

_CHUNK = 1 << 16


class EndError(WeirError):
    """An end of a transfer failed; the message is its own."""


class EndTimeoutError(EndError):
    """An end of a transfer did not end in time."""

    def __init__(self) -> None:
        super().__init__(TIMEOUT)


class End:
    """One running process."""

    def __init__(self, command: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        streams = self._process.stdin, self._process.stdout
        self._stdin, self._stdout = cast("tuple[IO[bytes], BufferedReader]", streams)
        self._read = b""

    def kill(self) -> None:
        """Ends it, whatever it is doing."""
        self._process.kill()
        self._process.communicate()

    def send(self, job: Mapping[str, Any]) -> None:
        """Hands over a job."""
        try:
            self._stdin.write(json.dumps(job).encode() + b"\n")
            self._stdin.flush()
        except BrokenPipeError:
            raise EndError(self._last_error()) from None

    def receive(self, deadline: float) -> dict[str, Any]:
        """The next line that it prints, by `deadline` on the monotonic clock.

        Raises:
            EndTimeoutError: there is none by then.
            EndError: it failed.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            while b"\n" not in self._read:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise EndTimeoutError
                chunk = self._stdout.read1(_CHUNK)
                if not chunk:
                    raise EndError(self._last_error())
                self._read += chunk
        line, self._read = self._read.split(b"\n", 1)
        said: dict[str, Any] = json.loads(line)
        if "error" in said:
            raise EndError(said["error"])
        return said

    def _last_error(self) -> str:
        _, said = self._process.communicate()
        lines = said.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it ended with exit code {self._process.returncode}"
