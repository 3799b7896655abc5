"""Turns into another program, after arranging that it dies with the thread that started it.

Run by its path: `python watchdog.py PARENT_PID COMMAND...`; nothing else is imported.
"""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Never returns."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent process has ended")
    # A guest that panics aborts, and its memory is not worth a core file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execv(command[0], command)  # noqa: S606 – a list, never a shell


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
