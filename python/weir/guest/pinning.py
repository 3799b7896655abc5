"""Ties each guest to one processor: its kernel and its processes take turns and never run at once.

On two processors each of their many switches wakes the other one, which takes 2.6 times as long.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

MARK = b"time-travel=inf-cpu"
"""Of the command line of a guest's kernel."""

STARTING = threading.Lock()
"""Held from the start of a guest until it is tied: two that start at once would choose the same."""


def pin(pid: int) -> None:
    """Ties a guest that has just been started to the processor with the fewest guests.

    Where the system has or allows no such thing, the guest runs all the same.
    """
    with suppress(AttributeError, OSError):
        allowed = sorted(os.sched_getaffinity(pid))
        taken = _taken(pid)
        os.sched_setaffinity(pid, {min(allowed, key=lambda cpu: (taken.count(cpu), cpu))})


def _taken(own: int) -> list[int]:
    """The processor of each other guest of this machine that is tied to one."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        pid = int(process.name)
        # Processes that end meanwhile, and those of others.
        with suppress(OSError):
            if pid == own or MARK not in (process / "cmdline").read_bytes():
                continue
            # A guest's kernel leads a session; its processes have the same command line.
            if os.getsid(pid) == pid and len(cpus := os.sched_getaffinity(pid)) == 1:
                found += cpus
    return found
