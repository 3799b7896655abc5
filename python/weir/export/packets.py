"""Packets as pcapng, one file per run and interface.

A simulation is a pure function of its scenario and its seed, and the results hold both: it is run
once more, with a tape. The hash over all its deliveries must be the one that the results have.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from weir import _native
from weir.base.errors import InputError, RunError
from weir.export.runs import ExportedRun
from weir.results.results import Results
from weir.scenario.source import SIM


def write(_results: Results, runs: Sequence[ExportedRun], folder: Path) -> None:
    """Writes `STEM-INTERFACE.pcapng` for each run: senders, receivers, both ends of bottlenecks.

    Raises:
        InputError: a run is not the simulator's, or goes over radio.
        RunError: a run came out differently from what is on disk.
    """
    for run in runs:
        if run.world != SIM:
            raise InputError(
                f"--format pcapng: {run.label} is of world {run.world}, whose packets are recorded "
                "as it runs: weir run --pcap DIR --world kernel"
            )
        record(run, folder)


def record(run: ExportedRun, folder: Path) -> None:
    """Simulates a run once more and records its packets.

    Raises:
        InputError: it goes over radio, or its connections come and go.
        RunError: it came out differently from what is on disk, or cannot be written.
    """
    scenario = run.case["scenario"]
    if any(flow["workload"]["kind"] == "flow-sizes" for flow in scenario["flow"]):
        # Hosts are recorded flow by flow; `--pcap` records links, which carry everything.
        raise InputError(
            f"{run.label}: packets of workload flow-sizes are recorded as it runs: "
            "weir run --pcap DIR"
        )
    text = json.dumps(scenario, ensure_ascii=False)
    try:
        found = _native.Scenario.from_json(text).record(run.seed, folder, run.stem)
    except _native.ScenarioError as error:
        raise InputError(f"{run.label}: {error}") from None
    except RuntimeError as error:
        raise RunError(str(error)) from None
    ours = pl.DataFrame(found.table("summary"))["trace_hash"][0]
    theirs = run.results.runs.filter(pl.col("run") == run.index)["trace_hash"][0]
    if ours != theirs:
        raise RunError(
            f"{run.title}: run once more, its packets went differently; version "
            f"{run.results.manifest['version']} wrote these results, this is {_native.version()}"
        )
