"""Boots a guest for one job and waits until it has powered itself off.

The guest's root is this machine's file system, read-only; what it writes goes to the folder of the
job. It needs no more permissions than its user, and ends with its parent, even when that is
killed.
"""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from weir import _native
from weir.guest import pinning, watchdog
from weir.kernel.cache import Kernel
from weir.kernel.recipe import KernelError

BOOT_LOG = "boot.log"
"""What the kernel says, in the folder of the job."""

MEMORY_MB = 768
LEAST_MEMORY_MB = 128

_LOOK_S = 0.05
_IDLE_S = 60.0
"""Virtual time never waits: a guest that has not computed for so long hangs."""
START_S = 1_500_000_000
"""The date at which guests boot, in seconds since 1970, so that none can depend on today's."""
_HERTZ = os.sysconf("SC_CLK_TCK")

Poll = Callable[[float], None]
"""Called many times a second with the processor time that the guest has used, in seconds."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What a guest is given."""

    seed: int
    memory_mb: int = MEMORY_MB
    start_s: int = START_S
    charges_spinning: bool = False
    """Whether calls of a process that does not block for long cost time: a loop of them ends then.
    Not where only our own programs run, as recorded traces were made without."""
    draws: str | None = None
    """What congestion controls draw from, as of `Scenario.lone_draws`; the kernel's own if None."""
    has_virtual_tsc: bool = False
    """Whether the instructions `rdtsc` and `rdtscp` read virtual time, not the host's counter."""


def boot(
    kernel: Kernel,
    job: Path,
    machine: Machine,
    control: _native.RunControl | None = None,
    poll: Poll | None = None,
) -> None:
    """Runs the job in `job` to its end, or until `control` or an error of `poll` breaks it off.

    Raises:
        KernelError: the guest cannot be started, hangs, or was broken off.
    """
    command = [str(kernel.binary), *arguments(machine)]
    start = [sys.executable, "-I", "-S", watchdog.__file__, str(os.getpid()), *command]
    memory = str(memory_folder(memory_mb=machine.memory_mb))
    environment = {"PATH": os.defpath, "TMPDIR": memory, "HOME": str(job)}
    with (job / BOOT_LOG).open("wb") as log:
        with pinning.STARTING:
            process = subprocess.Popen(
                start,
                cwd=job,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                # Ctrl-C is for us; the guest would take it for its own keyboard's.
                start_new_session=True,
            )
            pinning.pin(process.pid)
        try:
            _wait(process, control, poll)
        finally:
            process.kill()
            process.wait()


def arguments(machine: Machine) -> list[str]:
    """The guest's command line, from which its random numbers grow.

    It has nothing of this run but the seed: the folder of the job is the working directory.
    """
    package = Path(__file__).parents[2]
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONPATH": str(package),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return [
        f"mem={machine.memory_mb}M",
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"),
        *("con=null", "con0=null,fd:1", "loglevel=4"),
        *(pinning.MARK.decode(), f"time-travel-start={machine.start_s * 10**9}"),
        *("uml_dir=.", "umid=guest"),
        f"weir.seed={machine.seed}",
        *(["weir_spin"] if machine.charges_spinning else []),
        *([f"weir_draws={machine.draws}"] if machine.draws else []),
        *(["weir_tsc"] if machine.has_virtual_tsc else []),
        *(f"{name}={_quoted(value)}" for name, value in environment.items()),
        f"init={_quoted(sys.executable)}",
        *("--", "-S", "-m", "weir.guest.init"),
    ]


def memory_folder(
    folders: Sequence[str] = ("/dev/shm",),  # noqa: S108
    memory_mb: int = MEMORY_MB,
) -> Path:
    """Returns the folder for the guest's memory file: in memory, with space, and executable.

    Raises:
        KernelError: nowhere.
    """
    for folder in (*folders, tempfile.gettempdir()):
        path = Path(folder)
        if path.is_dir() and _has_space(path, memory_mb) and _may_hold_code(path):
            return path
    raise KernelError(
        f"no folder for a guest's memory ({memory_mb} MB): neither {' nor '.join(folders)} nor "
        f"{tempfile.gettempdir()} has the space and may hold executable code (TMPDIR names another)"
    )


def _has_space(path: Path, memory_mb: int) -> bool:
    return shutil.disk_usage(path).free > memory_mb << 20


def _may_hold_code(path: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=path) as file:
            file.truncate(mmap.PAGESIZE)
            protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
            mmap.mmap(file.fileno(), mmap.PAGESIZE, mmap.MAP_PRIVATE, protection).close()
    except OSError:
        return False
    return True


def _wait(
    process: subprocess.Popen[bytes], control: _native.RunControl | None, poll: Poll | None
) -> None:
    used, changed = -1.0, time.monotonic()
    while True:
        try:
            process.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            pass
        else:
            return
        if control is not None and control.is_stopped:
            raise KernelError("the run was broken off")
        now = _cpu_s(process.pid)
        if poll is not None:
            poll(now)
        if now != used:
            used, changed = now, time.monotonic()
        elif time.monotonic() - changed > _IDLE_S:
            raise KernelError(f"the guest hangs: it has not computed for {_IDLE_S:.0f} s")


def _cpu_s(pid: int) -> float:
    """The processor time of a process, its threads and the children it has waited for.

    A guest's processes are children of its kernel, which has not waited for those that run.
    """
    total = _ticks(pid)
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += sum(map(_ticks, map(int, (task / "children").read_text().split())))
    return total / _HERTZ


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15]))


def _quoted(value: str) -> str:
    """A value as the kernel's command line wants it."""
    if '"' in value or "\n" in value:
        raise KernelError(f"{value!r}: a guest's command line cannot hold a path with a quote")
    return f'"{value}"' if " " in value else value
