"""The end of a path test that decides: it connects to a server, and runs loads next to probes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Self

from weir.pathtest.control import Control
from weir.pathtest.measuring import Run, Watch
from weir.probes.record import Order, Record

_SWITCH_S = 0.0005


class Client(Control):
    """A client of one server; a context manager that holds the control connection."""

    def __enter__(self) -> Self:
        sys.setswitchinterval(_SWITCH_S)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, order: Order, watch: Watch, is_stopped: Callable[[], bool]) -> Record:
        """Runs one load.

        Raises:
            WeirError: the connection broke.
            StoppedError: `is_stopped`.
        """
        with contextlib.closing(Run(self, order)) as run:
            run.prepare()
            return run.measure(watch, is_stopped)
