"""From a capture, a result directory, or the files of others to what was measured."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path as File
from typing import Annotated

import polars as pl

from weir import reading
from weir.base.errors import InputError
from weir.base.options import MEASUREMENT, Option, documented
from weir.estimates.fit import fit
from weir.estimates.packets import Packets
from weir.modelling import profiles
from weir.modelling.discipline import managed
from weir.modelling.loads import measured_loads
from weir.modelling.measured import Measurement, flow_of
from weir.modelling.tested import of_test
from weir.results.results import damage_reported, load
from weir.running import runner
from weir.scenario.source import REAL_PATH, SIM, VIRTUAL, Effective

_MOST_SPURIOUS = 3
_SHARED = (
    "the flow shared its path with other flows of the scenario, which react to it; the model has "
    "what they left of the rate and the queue"
)


@documented()
def measure(
    source: File,
    connection: Annotated[
        int | None,
        Option(
            "Connection to model, counted from 1 in the order of `weir read`.",
            MEASUREMENT,
            default_text="the largest",
            min=1,
        ),
    ] = None,
    stack: Annotated[
        str | None,
        Option(
            "Congestion control of the measured flow.",
            MEASUREMENT,
            metavar="STACK",
            default_text="that of the results or the capture, else cubic",
        ),
    ] = None,
) -> Measurement:
    """Measures the path behind `source`.

    Args:
        source: A capture, a result directory, a trace of mahimahi, or a profile of iBox.

    Raises:
        InputError: it is none of the inputs, or has too little of a flow.
    """
    if source.is_dir():
        return _of_results(source, connection, stack)
    found = profiles.read(source)
    if found is None:
        return _of_capture(source, str(source), connection, stack)
    if connection is not None or stack is not None:
        option = "--stack" if connection is None else "--connection"
        raise InputError(f"{option} is about a measured flow; a trace or profile has none")
    return found


def _of_capture(file: File, name: str, connection: int | None, stack: str | None) -> Measurement:
    found = reading.read([file], packets=True)
    rows = [row for row in found.connections.iter_rows(named=True) if row["data_packets"]]
    # A capture with several interfaces has a connection at each; the one at the sender shows most.
    if connection is None:
        at_sender = [row for row in rows if row["capture_point"] == "sender"]
        chosen = (at_sender or rows)[:1]
    else:
        chosen = [row for row in rows if row["connection"] == connection - 1]
    if not chosen:
        what = (
            "no TCP connection with data" if connection is None else f"no connection {connection}"
        )
        raise InputError(f"{name}: it has {what}; weir read {name} lists them")
    (row,) = chosen
    row["file"] = name
    slices = found.slices.filter(pl.col("connection") == row["connection"])
    flow = flow_of(row, stack)
    path = managed(fit(row, found.packets), flow, Packets.of(row, found.packets))
    warnings = list(found.warnings)
    if path.reorder is None and row["retransmits_spurious"] >= _MOST_SPURIOUS:
        warnings.append(
            f"{row['retransmits_spurious']} retransmissions were not needed: packets may arrive in "
            "another order, or their delay varies; the model has neither"
        )
    return Measurement(name, path, flow, slices, tuple(warnings))


def _of_results(folder: File, connection: int | None, stack: str | None) -> Measurement:
    """Runs the first run again, with the same seed, and captures it. Tests are read as they are."""
    results = load(folder)
    with damage_reported(folder):
        case = results.cases[0]
        world = case.get("world", SIM)
        if world == REAL_PATH:
            return of_test(results, str(folder), connection, stack)
        scenario = Effective.from_json(json.dumps(case["scenario"], ensure_ascii=False))
        seed = int(results.runs.filter(pl.col("label") == case["label"])["seed"][0])
    # Results of others run no programs: the native module refuses controllers in Python.
    if world not in (SIM, VIRTUAL) or scenario.contenders:
        what = "programs of other projects" if scenario.contenders else f"world {world}"
        raise InputError(
            f"{folder}: {what} cannot be run again in the same way; record packets with --pcap "
            "and give the capture"
        )
    with tempfile.TemporaryDirectory() as scratch:
        capture = File(scratch) / "run.pcapng"
        runner.execute(scenario, seed, world, None, capture)
        (only, *others) = scenario.stacks
        known = stack or (None if others else only)
        found = _of_capture(capture, str(folder), connection, known)
    warnings = found.warnings
    if others:
        warnings = (*warnings, _SHARED)
    loads = () if others or stack or connection else measured_loads(results, case)
    return replace(found, warnings=warnings, loads=loads)
