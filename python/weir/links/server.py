"""A server at the far end of a live link: its start, its readiness, its end."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Self

from weir.base.errors import InputError
from weir.links.link import Link
from weir.processes.outputs import Ended, Files, Follower, Show
from weir.processes.ready import GRACE_S, POLL_S, Ready

SERVER = "server"

_READY_WITHIN_S = 60.0
_SHOW_EVERY_S = 0.1


class Server:
    """A server that runs at the far end of a link, which must be `isolated`.

    It is a context manager: its start waits until the server is ready, and its end stops it.
    """

    ended: Ended
    """How it ended, after the context."""

    def __init__(
        self, link: Link, command: str, ready: Ready, show: Show, *, check: Callable[[], None]
    ) -> None:
        """Describes it; `command` is for `sh`, and an error of `check` ends the wait."""
        self._link, self._command, self._ready, self._show = link, command, ready, show
        self._check = check
        self._over = Event()

    def __enter__(self) -> Self:
        """Starts it.

        Raises:
            InputError: it ended before it was ready, or was not ready within a minute.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="weir-link-")
        try:
            self._start(Path(self._folder.name))
        except BaseException:
            self._folder.cleanup()
            raise
        try:
            self._await_ready()
        except BaseException:
            self._stop((0.0, GRACE_S[1]))
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop(GRACE_S)

    def _start(self, folder: Path) -> None:
        self._files: Files = (folder / "out", folder / "err")
        with self._files[0].open("wb") as out, self._files[1].open("wb") as err:
            self._process = self._link.start(
                ["sh", "-c", self._command],
                far=True,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                # A signal reaches all processes of the server; Ctrl-C is for the client.
                start_new_session=True,
            )
        follower = Follower({SERVER: self._files}, self._show)
        self._thread = Thread(target=self._follow, args=[follower], daemon=True)
        self._thread.start()

    def _follow(self, follower: Follower) -> None:
        while not self._over.wait(_SHOW_EVERY_S):
            follower.poll()
        follower.poll()

    def _await_ready(self) -> None:
        began = time.monotonic()
        while True:
            self._check()
            waited = time.monotonic() - began
            if self._ready.is_met(waited, self._process.pid, self._files):
                return
            code = self._process.poll()
            if code is not None:
                raise InputError(
                    f"--server: it ended with exit code {code} before it was ready ({self._ready})"
                )
            if waited > max(_READY_WITHIN_S, self._ready.longest_s):
                raise InputError(
                    f"--server: it was not ready ({self._ready}) after {_READY_WITHIN_S:.0f} s"
                    f"{self._ready.hint}"
                )
            time.sleep(POLL_S)

    def _stop(self, grace_s: tuple[float, float]) -> None:
        for allowed_s, then in zip(grace_s, (signal.SIGTERM, signal.SIGKILL), strict=True):
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(allowed_s)
                break
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, then)
        code = self._process.wait()
        # Processes that it started and did not wait for.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        self._over.set()
        self._thread.join()
        self.ended = Ended.read(self._files, code)
        self._folder.cleanup()
