"""A Dask cluster on this machine: a scheduler and workers, each a process, which end with it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from weir.base.errors import RunError

_PATIENCE_S = 60.0
_LOOK_S = 0.05

Process = subprocess.Popen[bytes]


class Workers:
    """The processes of a cluster; what they say goes to the file `log`."""

    def __init__(self, folder: Path, stack: ExitStack, host: str) -> None:
        self.file = folder / "scheduler.json"
        self.log = folder / "log"
        self._stack = stack
        where = ("--host", host, "--port", "0", "--scheduler-file", str(self.file))
        self.scheduler = self._start("scheduler", *where)
        wait_until(self.file.is_file)

    def start(self, *, path: Path | None = None, inside: Sequence[str] = ()) -> Process:
        """One more worker of one thread, which is not restarted, with modules from `path`.

        `inside` is a command that runs another one, as in a network namespace.
        """
        options = ("--nthreads", "1", "--no-nanny", "--memory-limit", "0")
        words = ("worker", "--scheduler-file", str(self.file), *options)
        return self._start(*words, path=path, inside=inside)

    def _start(self, *words: str, path: Path | None = None, inside: Sequence[str] = ()) -> Process:
        paths = [*([str(path)] if path else []), *sys.path]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [*inside, sys.executable, "-m", "dask", *words, "--no-dashboard"],
                cwd=self.file.parent,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            )
        self._stack.callback(kill, process)
        return process


@contextmanager
def cluster(
    folder: Path, workers: int, host: str = "127.0.0.1", last_inside: Sequence[str] = ()
) -> Iterator[tuple[Workers, list[Process]]]:
    """A cluster of `n` workers, of which not all need to be there yet.

    The last one starts by the command `last_inside`.
    """
    with ExitStack() as stack:
        started = Workers(folder, stack, host)
        ways = [*[()] * (workers - 1), last_inside]
        yield started, [started.start(inside=way) for way in ways]


def kill(process: Process) -> None:
    """Ends a process as a machine that fails would."""
    process.kill()
    process.wait()


def wait_until(is_so: Callable[[], bool]) -> None:
    """Waits for what another process does.

    Raises:
        RunError: it does not.
    """
    late = time.monotonic() + _PATIENCE_S
    while not is_so():
        if time.monotonic() > late:
            raise RunError(f"the cluster did nothing for {_PATIENCE_S:g} s")
        time.sleep(_LOOK_S)
