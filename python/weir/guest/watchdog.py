"""Turns into another program, after arranging that it dies with the thread that started it.

Run by its path: `python watchdog.py PARENT_PID COMMAND...`; nothing else is imported.
"""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
_ADDR_NO_RANDOMIZE = 0x0040000
"""Of personality(2). With random addresses the guest's memory, and with it the largest buffers of
its TCP, differ from boot to boot: the kernel adds what lies between its program and its heap."""


def main(parent: int, command: list[str]) -> None:
    """Never returns."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # Where this is not permitted, as in some containers, the guest runs all the same.
    libc.personality(ctypes.c_ulong(_ADDR_NO_RANDOMIZE))
    if os.getppid() != parent:
        sys.exit("the parent process has ended")
    # A guest that panics aborts, and its memory is not worth a core file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execv(command[0], command)  # noqa: S606 – a list, never a shell


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
