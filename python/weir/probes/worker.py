"""A thread that works until it is ended."""

from __future__ import annotations

import threading


class Worker:
    """Runs `_run` in a thread of its own, which looks at `_ended`."""

    def __init__(self, name: str) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def end(self) -> None:
        """Ends the thread, and waits for it."""
        if not self._ended.is_set():
            self._ended.set()
            self._thread.join()

    def _run(self) -> None:
        raise NotImplementedError
