"""The same networks on ns-3, where that is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench import measure
from bench.cases import Ns3Case
from weir.base.errors import RunError

SOURCES = Path("bench/ns3")
"""Where the programs are, from the top of Weir's sources."""

_LIBRARIES = {
    "dumbbell": ("point-to-point", "applications", "internet", "network", "core"),
    "chain": (
        *("wifi", "aodv", "traffic-control", "mobility", "propagation"),
        *("applications", "internet", "network", "core"),
    ),
}


def missing() -> str | None:
    """What stands in the way of a comparison and how to change that; `None` if nothing does."""
    if not SOURCES.is_dir():
        return f"{SOURCES} is not here; start this from the top of Weir's sources."
    if shutil.which("c++") is None:
        return "there is no C++ compiler called c++ (Debian, Ubuntu: build-essential)."
    if shutil.which("pkg-config") is None or version() is None:
        return "it is not installed (Debian, Ubuntu: ns3 libns3-dev pkg-config)."
    return None


def version() -> str | None:
    """The version of the installed development files."""
    asked = subprocess.run(  # found on the path like any tool
        ["pkg-config", "--modversion", "ns3-core"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or None


def build(directory: Path, name: str) -> Path:
    """Compiles the program `name` into `directory`.

    The libraries are named here because Debian's package configuration asks for files of another
    package that ns-3's do not bring.

    Raises:
        RunError: the compiler refused.
    """
    source, program = SOURCES / f"{name}.cc", directory / name
    links = [f"-lns3-{library}" for library in _LIBRARIES[name]]
    command = ["c++", "-std=c++17", "-O2", str(source), "-o", str(program), *links]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    if compiled.returncode:
        errors = [line for line in compiled.stderr.splitlines() if "error" in line]
        raise RunError(f"{source} does not compile: {(errors or ['c++ failed'])[0]}")
    return program


def compare(program: Path, case: Ns3Case, repeats: int) -> Iterator[measure.Row]:
    """Both simulators on a case, in turns: a machine's speed drifts, so a ratio is of one round.

    Raises:
        RunError: a run failed.
    """
    theirs_too = min(repeats, case.ns3_repeats or repeats)
    ours, theirs = [], []
    for turn in range(repeats):
        ours.append(measure.once(case))
        if turn < theirs_too:
            theirs.append(once(program, case))
    mine = measure.row(case, "weir", ours)
    if case.ns3_sim_s == case.sim_s:
        rounds = zip(ours, theirs, strict=False)
        mine["ns3_cpu_ratio"] = median(his["cpu_s"] / my["cpu_s"] for my, his in rounds)
    yield mine
    yield row(case, theirs)


def once(program: Path, case: Ns3Case) -> measure.Row:
    """One run of a case on ns-3.

    Raises:
        RunError: it failed.
    """
    options = (f"--{key}={value}" for key, value in case.ns3_options.items())
    return measure.run([str(program), *options])


def row(case: Ns3Case, runs: list[measure.Row]) -> measure.Row:
    """The runs of a case on ns-3 as a row."""
    sim_s = case.ns3_sim_s or case.sim_s
    note = "" if sim_s == case.sim_s else f"{sim_s:g} s of {case.sim_s:g} s"
    return measure.row(case, f"ns-3 {version()}", runs, note)
