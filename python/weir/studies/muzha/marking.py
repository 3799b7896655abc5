"""RED with marks in the interface queues: what ATCP takes for congestion, and NewReno beside it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from weir.results import Results
from weir.stats import mean_interval
from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Contests, Extent
from weir.studies.muzha.experiment import NEWRENO, STACKS, Radio, Sender, Watch, hops_of, scenario
from weir.studies.muzha.quantities import RETRANSMISSIONS, THROUGHPUT

HOPS = (4, 8)
WINDOW = 32
RED = "{ min = 2, max = 8 }"
"""Ours: the first nodes queue a few packets, so thresholds are about half of the usual ones."""

EVENTS = 100_000
"""More than a run has."""

MARKS, CONGESTED = "marks", "times congested"


@dataclass(frozen=True, slots=True)
class Family:
    """A sender, and what queues and routers do."""

    policy: str = "none"
    notices: str = "none"
    red: str | None = None


SENDERS: Mapping[str, Family] = {
    NEWRENO: Family(),
    "NewReno, RED and ECN": Family(red=RED),
    "ATCP": Family("atcp", "unreachable"),
    "ATCP, RED and ECN": Family("atcp", "unreachable", RED),
}


def label(name: str, hops: int) -> str:
    """The name of a case."""
    return f"marking, {name}, {hops} hops"


def table(hops: int) -> str:
    """The name of a table of this part."""
    return f"RED and ECN, {hops} hops"


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of this part by its label."""
    found = {}
    for (name, own), hops in itertools.product(SENDERS.items(), hops_of(extent, HOPS)):
        keys = {"notices": f'"{own.notices}"'}
        if own.red is not None:
            keys["red"] = own.red
        sender = Sender(STACKS[NEWRENO], WINDOW, policy=own.policy, ecn=own.red is not None)
        radio, watch = Radio(hops, keys=keys), Watch(extent.seconds, events=EVENTS)
        found[label(name, hops)] = scenario(radio, [sender], extent, watch)
    return found


def cells(results: Results, contests: Contests, extent: Extent) -> Iterator[Cell]:
    """Throughput, retransmissions, marks, and how often the sender's layer saw congestion."""
    runs = results.runs.filter(pl.col("label").str.starts_with("marking,"), status="ok")
    runs = runs.select("run", "label")
    nodes = results.scan("nodes").collect().join(runs, on="run")
    marks = nodes.group_by("label", "run").agg(pl.col("marks").sum())
    entered = (
        results.scan("events").filter(pl.col("kind") == "congested").collect().join(runs, on="run")
    )
    for hops, name in itertools.product(hops_of(extent, HOPS), SENDERS):
        case = label(name, hops)
        for quantity in (THROUGHPUT, RETRANSMISSIONS):
            ours = quantity.of(contests, case)
            yield cell(table(hops), name, quantity.name, quantity.unit, ours)
        own = marks.filter(label=case)["marks"]
        yield cell(table(hops), name, MARKS, "packets", mean_interval(own, (0.0, None)))
        counts = entered.filter(label=case).group_by("run").len()
        known = dict(counts.iter_rows())
        times = [known.get(run, 0) for run in runs.filter(label=case)["run"]]
        yield cell(table(hops), name, CONGESTED, "times", mean_interval(times, (0.0, None)))
