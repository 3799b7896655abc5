"""The same networks on ns-3, where that is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from weir.bench import measure
from weir.bench.cases import Case
from weir.errors import RunError

SOURCE = Path("bench/ns3/dumbbell.cc")
"""The program, from the top of Weir's sources."""

_LIBRARIES = ("point-to-point", "applications", "internet", "network", "core")


def missing() -> str | None:
    """What stands in the way of a comparison and how to change that; `None` if nothing does."""
    if not SOURCE.is_file():
        return f"{SOURCE} is not here; start this from the top of Weir's sources."
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


def build(directory: Path) -> Path:
    """Compiles the program into `directory`.

    The libraries are named here because Debian's package configuration asks for files of another
    package that ns-3's do not bring.

    Raises:
        RunError: the compiler refused.
    """
    program = directory / "dumbbell"
    links = [f"-lns3-{name}" for name in _LIBRARIES]
    command = ["c++", "-std=c++17", "-O2", str(SOURCE), "-o", str(program), *links]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    if compiled.returncode:
        errors = [line for line in compiled.stderr.splitlines() if "error" in line]
        raise RunError(f"{SOURCE} does not compile: {(errors or ['c++ failed'])[0]}")
    return program


def run(program: Path, case: Case) -> measure.Row:
    """What ns-3 takes for a case, once: repeats would take minutes and change little.

    Raises:
        RunError: it failed.
    """
    sim_s = case.ns3_sim_s or case.sim_s
    options = {
        "flows": case.flows,
        "rate": case.rate_mbps * 1_000_000,
        "rtt": f"{case.rtt_ms}ms",
        "stagger": f"{case.stagger_us}us",
        "duration": f"{sim_s}s",
    }
    command = [str(program), *(f"--{key}={value}" for key, value in options.items())]
    note = "" if sim_s == case.sim_s else f"{sim_s:g} s of {case.sim_s:g} s"
    return measure.row(case, f"ns-3 {version()}", [measure.run(command)], note)
