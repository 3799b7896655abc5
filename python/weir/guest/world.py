"""The world `kernel-virtual`: a scenario in a guest, its tables back."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from weir import _native
from weir.guest import machine
from weir.guest.job import CAPTURE, JOB, LOG, STATUS, TABLES
from weir.guest.machine import Machine
from weir.kernel import cache
from weir.kernel.cache import Kernel
from weir.kernel.recipe import KernelError
from weir.scenario.source import KERNEL


class Programs(Protocol):
    """Programs of flows in a guest."""

    def prepare(self, job: Path) -> list[dict[str, Any]]:
        """Writes their files into the folder of the job; returns their commands."""

    def keep(self, job: Path) -> None:
        """Keeps what they wrote."""


_TAIL = 6
_TELLING = ("Kernel panic", "Out of memory", "oom-kill", "segfault", "BUG:")
"""What a kernel's log says when something is wrong, worth more than its last lines."""


def run(
    scenario: str,
    seed: int,
    world: str = KERNEL,
    control: _native.RunControl | None = None,
    pcap: Path | None = None,
    programs: Programs | None = None,
    draws: str | None = None,
) -> dict[str, pl.DataFrame]:
    """One run in a guest of its own: the same arguments give the same tables.

    It takes as much of one core as the guest computes, whatever time goes by in there. Packets are
    recorded in `pcap`, with times from the beginning of the run. `programs` are those of flows.
    Congestion controls draw from `draws`, as of `Scenario.lone_draws`.

    Raises:
        KernelError: there is no guest kernel, or the guest failed; its last words are quoted.
        ScenarioError: the guest's kernel cannot host the scenario.
    """
    kernel = cache.needed()
    with tempfile.TemporaryDirectory(prefix="weir-guest-") as folder:
        job = Path(folder)
        asked = {
            "scenario": scenario,
            "seed": seed,
            "world": world,
            "pcap": pcap is not None,
            "programs": [] if programs is None else programs.prepare(job),
        }
        (job / JOB).write_text(json.dumps(asked), encoding="utf-8")
        virtual = Machine(seed, charges_spinning=programs is not None, draws=draws)
        boot(kernel, job, virtual, control)
        if programs is not None:
            programs.keep(job)
        if pcap is not None:
            publish_capture(job / CAPTURE, pcap)
        return tables_of((job / TABLES).read_text(encoding="utf-8"))


_TYPES = {
    "Boolean": pl.Boolean,
    "Float64": pl.Float64,
    "UInt32": pl.UInt32,
    "UInt64": pl.UInt64,
    "Utf8": pl.String,
}
"""Types of columns by their names in Arrow."""


def tables_of(text: str) -> dict[str, pl.DataFrame]:
    """The tables of a run, from `_native.RunResult.to_json`."""
    return {
        table: pl.DataFrame(
            [pl.Series(name, cells, _TYPES[kind]) for name, (kind, cells) in columns.items()]
        )
        for table, columns in json.loads(text).items()
    }


def boot(
    kernel: Kernel,
    job: Path,
    machine_: Machine,
    control: _native.RunControl | None = None,
    poll: machine.Poll | None = None,
) -> dict[str, Any]:
    """Runs the job in `job` in a guest; returns its outcome.

    Raises:
        KernelError: the guest failed; its last words are quoted.
        ScenarioError: the guest refuses what the job needs.
    """
    try:
        machine.boot(kernel, job, machine_, control, poll)
    except KernelError as error:
        raise KernelError(f"{error}{_quoted(job)}") from None
    return _outcome(job)


def publish_capture(capture: Path, pcap: Path) -> None:
    """Copies the packets to where they are wanted, under their name once they are complete."""
    partial = pcap.with_name(f"{pcap.name}.partial")
    try:
        shutil.copyfile(capture, partial)
        partial.replace(pcap)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise KernelError(f"{pcap}: {error.strerror}") from None


def _outcome(job: Path) -> dict[str, Any]:
    """The guest's answer; raises what went wrong there."""
    try:
        status: dict[str, Any] = json.loads((job / STATUS).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        raise KernelError(f"the guest ended before its time{_quoted(job)}") from None
    error = status["error"]
    if error is None:
        return status
    if status["scenario"]:
        raise _native.ScenarioError(error)
    raise KernelError(f"the run in the guest failed: {' / '.join(_lines(error)[-_TAIL:])}")


def _quoted(job: Path) -> str:
    """The guest's last words."""
    said = []
    for name in (machine.BOOT_LOG, LOG):
        path = job / name
        lines = _lines(path.read_text(encoding="utf-8", errors="replace")) if path.exists() else []
        telling = [line for line in lines if any(word in line for word in _TELLING)]
        said += telling[:_TAIL] or lines[-_TAIL:]
    return f"; its last words: {' / '.join(said)}" if said else "; it said nothing"


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
