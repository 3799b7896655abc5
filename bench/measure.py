"""Measures a case: the requested number of runs, each in a fresh process, and their median."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from statistics import median
from typing import Any

from bench.cases import Case
from weir.base.errors import RunError

Row = dict[str, Any]


def weir(case: Case, repeats: int) -> Row:
    """What Weir takes for it.

    Raises:
        RunError: a run failed.
    """
    return row(case, "weir", [once(case) for _ in range(repeats)])


def once(case: Case) -> Row:
    """One run of it, in a process of its own.

    Raises:
        RunError: it failed.
    """
    return scenario(case.scenario)


def scenario(text: str) -> Row:
    """One run of a scenario, in a process of its own.

    Raises:
        RunError: it failed.
    """
    return run([sys.executable, "-m", "bench.worker"], text)


def run(command: Sequence[str], text: str = "") -> Row:
    """What a measuring program printed.

    Raises:
        RunError: it failed.
    """
    ended = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if ended.returncode:
        reason = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
        raise RunError(f"{command[0]}: {reason[-1]}")
    printed: Row = json.loads(ended.stdout)
    return printed


def row(case: Case, simulator: str, runs: Sequence[Row], note: str = "") -> Row:
    """The runs of a case as a row; they differ in time and memory only."""
    work = runs[0]
    cpu_s = median(run["cpu_s"] for run in runs)
    return {
        "case": case.name,
        "group": case.group,
        "simulator": simulator,
        "stack": case.stack,
        "flows": case.flows,
        "rate_mbps": case.rate_mbps,
        "rtt_ms": case.rtt_ms,
        "sample_interval_ms": case.sample_ms if simulator == "weir" else None,
        "sim_s": work["sim_s"],
        "events": work["events"],
        "data_packets": work["data_packets"],
        "goodput_mbps": work["goodput_mbps"],
        "repeats": len(runs),
        "cpu_s": cpu_s,
        "cpu_s_min": min(run["cpu_s"] for run in runs),
        "cpu_s_max": max(run["cpu_s"] for run in runs),
        "events_per_cpu_s": work["events"] / cpu_s,
        "packets_per_cpu_s": work["data_packets"] / cpu_s,
        "sim_s_per_cpu_s": work["sim_s"] / cpu_s,
        "peak_mib": median(run["peak_mib"] for run in runs),
        "run_mib": median(run["run_mib"] for run in runs) if "run_mib" in work else None,
        "ns3_cpu_ratio": None,
        "note": note,
    }
