"""Commands in a guest, behind an emulated link, in virtual time.

>>> done = run(  # doctest: +SKIP
...     ["iperf3", "-c", "100.64.0.1", "-t", "5", "-J"],
...     server=["iperf3", "-s", "-1"],
...     link=LinkOptions(rate="20mbit", rtt="40ms"),
... )
>>> done.client.code, done.report["up"]["sent_bytes"]  # doctest: +SKIP
(0, 12543692)

Two calls with the same arguments and the same files give the same bytes, as far as the commands
take nothing from the host's processor.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weir.base.errors import InputError, WeirError
from weir.guest import commands, world
from weir.guest.job import CAPTURE, JOB
from weir.guest.machine import MEMORY_MB, START_S, Machine
from weir.kernel import cache
from weir.kernel.cache import Kernel
from weir.kernel.recipe import KernelError
from weir.links.emulation import PathReport
from weir.links.ends import HOST6, HOST6_VARIABLE, HOST_VARIABLE, with_addresses
from weir.links.options import LinkOptions
from weir.processes import ready as readiness
from weir.processes.outputs import Ended, Follower, Show
from weir.processes.ready import Ready

HOST = commands.HOST
"""The address of the server's end, for commands behind the link."""

_STALLED_CPU_S = 120.0
"""A guest that has computed for so long while no virtual time passed is given up."""


class LimitError(WeirError):
    """A command did not end within a limit."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a run of commands gave."""

    client: Ended
    server: Ended | None
    report: PathReport
    """The link's counters when the client had ended; `up` is from the client."""
    files: tuple[str, ...]
    """Paths of the files written in the working folder, below it."""
    virtual_s: float
    """From the start of the server, or of the client without one, to the end of the client."""
    wall_s: float


def run(
    client: Sequence[str],
    *,
    server: Sequence[str] | None = None,
    ready: Ready = readiness.DEFAULT,
    link: LinkOptions | None = None,
    seed: int = 1,
    time_limit_s: float = 600.0,
    wall_limit_s: float | None = None,
    memory_mb: int = MEMORY_MB,
    start_s: int = START_S,
    virtual_tsc: bool = False,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    out: Path | None = None,
    pcap: Path | None = None,
    kernel: Kernel | None = None,
    show: Show | None = None,
) -> Done:
    """Runs `client` behind a link, and `server` at its other end, in a guest of their own.

    The commands see this machine's files as its user does. What they write is seen by both, and is
    lost with the guest, but for `out`.

    Args:
        client: The command behind the link, and its arguments. `$WEIR_LINK_HOST` is the server's
            address, 100.64.0.1 in every run, and `$WEIR_LINK_HOST6` its IPv6 address.
        server: The command at the other end, started before.
        ready: When the client may start. The time counts from the server's start.
        link: The link; without it packets take no time.
        seed: Random seed of the link, and of the guest kernel's random numbers.
        time_limit_s: Virtual time after which the commands are ended.
        wall_limit_s: Real time after which the guest is ended.
        memory_mb: The guest's memory.
        start_s: The guest's clock at its boot, in seconds since 1970.
        virtual_tsc: Whether the instructions `rdtsc` and `rdtscp` read virtual time, as a counter
            of 1 GHz, and not the host's counter. All programs are then slower.
        environment: Environment variables of the commands, in place of this process's.
        folder: Their working folder, in place of this process's.
        out: A folder that receives what they wrote in the working folder.
        pcap: A file for the packets at both ends of the link.
        kernel: The guest kernel, in place of the default one.
        show: Receives output while the commands run.

    Raises:
        InputError: a command cannot be started, or the server ended before it was ready.
        ScenarioError: an option of the link is not allowed.
        LimitError: a limit was reached.
        KernelError: there is no guest kernel, or the guest failed.
    """
    kernel = kernel or cache.needed(virtual_tsc=virtual_tsc)
    if virtual_tsc and not kernel.has_virtual_tsc:
        raise InputError(f"virtual_tsc: kernel {kernel.path.name} was built without it")
    began = time.monotonic()
    options, ways = (link or LinkOptions()).to_native()
    variables = dict(os.environ if environment is None else environment)
    variables |= {HOST_VARIABLE: HOST, HOST6_VARIABLE: HOST6}
    asked = {
        commands.CLIENT: with_addresses(client, variables),
        commands.SERVER: None if server is None else with_addresses(server, variables),
        "ready": [ready.kind, ready.value],
        "options": options,
        "ways": ways,
        "seed": seed,
        "time_limit_s": time_limit_s,
        "environment": variables,
        "folder": str((folder or Path.cwd()).absolute()),
        "pcap": pcap is not None,
    }
    with tempfile.TemporaryDirectory(prefix="weir-guest-") as name:
        job = Path(name)
        (job / JOB).write_text(json.dumps(asked), encoding="utf-8")
        files = {name: commands.output(job, name) for name in (commands.SERVER, commands.CLIENT)}
        follower = None if show is None else Follower(files, show)
        watch = _Watch(job, wall_limit_s, follower)
        virtual = Machine(
            seed, memory_mb, start_s, charges_spinning=True, has_virtual_tsc=virtual_tsc
        )
        status = world.boot(kernel, job, virtual, poll=watch.poll)
        if follower is not None:
            follower.poll()
        if status["refused"] is not None:
            raise InputError(status["refused"])
        if status["limited"]:
            raise LimitError(_over(status["limited"], time_limit_s))
        if pcap is not None:
            world.publish_capture(job / CAPTURE, pcap)
        if out is not None:
            _bring_out(job / commands.WRITTEN, out)
        codes = status["codes"].items()
        ends = {name: Ended.read(commands.output(job, name), code) for name, code in codes}
        return Done(
            client=ends[commands.CLIENT],
            server=ends.get(commands.SERVER),
            report=status["report"],
            files=tuple(status["files"]),
            virtual_s=status["elapsed_s"],
            wall_s=time.monotonic() - began,
        )


def _over(names: Sequence[str], time_limit_s: float) -> str:
    who = " and ".join("the server" if name == commands.SERVER else "the command" for name in names)
    runs = "runs" if len(names) == 1 else "run"
    return (
        f"time limit of {time_limit_s:g} s (virtual) reached: {who} still {runs}; it needs longer "
        "(--time-limit), or waits for something that never happens"
    )


def _bring_out(written: Path, out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        if written.is_dir():
            shutil.copytree(written, out, symlinks=True, dirs_exist_ok=True)
    except OSError as error:
        raise KernelError(f"--out {out}: {error.strerror}") from None
    except shutil.Error as error:
        raise KernelError(f"--out {out}: {error.args[0][0][2]}") from None


@dataclass(slots=True)
class _Watch:
    """Follows a guest while it runs: its outputs, its limits, its progress in virtual time."""

    job: Path
    wall_limit_s: float | None
    follower: Follower | None
    began: float = field(default_factory=time.monotonic)
    virtual_s: float | None = None
    """The guest's time, once the commands have been started."""
    cpu_at_progress_s: float = 0.0

    def poll(self, cpu_s: float) -> None:
        """Raises an error if the guest has exceeded a limit."""
        if self.follower is not None:
            self.follower.poll()
        progress = self._progress()
        if progress != self.virtual_s:
            self.virtual_s, self.cpu_at_progress_s = progress, cpu_s
        at = "before the start" if progress is None else f"at {progress:g} s"
        if self.wall_limit_s is not None and time.monotonic() - self.began > self.wall_limit_s:
            raise LimitError(f"wall limit of {self.wall_limit_s:g} s reached {at} of virtual time")
        if cpu_s - self.cpu_at_progress_s > _STALLED_CPU_S:
            raise LimitError(
                f"virtual time stands still {at}, after {_STALLED_CPU_S:.0f} s of computing: a "
                "command computes too long, or polls memory; the guest has one processor without "
                "preemption"
            )

    def _progress(self) -> float | None:
        try:
            return float((self.job / commands.PROGRESS).read_text())
        except (FileNotFoundError, ValueError):
            return None
