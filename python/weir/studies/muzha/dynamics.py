"""Three flows of one protocol on a chain, which start one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weir.fairness import jain
from weir.results import Results
from weir.stats import mean_interval
from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Contests, Extent
from weir.studies.muzha.experiment import STACKS, Radio, Sender, Watch, scenario
from weir.studies.muzha.quantities import THROUGHPUT

HOPS = 4
WINDOW = 32
STARTS_S = (0.0, 10.0, 20.0)
"""Ours: the slides do not tell. They end after 28 s."""

END_S = 28.0

TABLE = "three flows"
FLOWS = ("flow 1", "flow 2", "flow 3")
FAIRNESS = "Jain"
LARGEST = "largest window"


def label(protocol: str) -> str:
    """The name of a case."""
    return f"three flows, {protocol}"


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of this part by its label."""
    watch = Watch(END_S, warmup_s=STARTS_S[-1], sample_s=0.1)
    return {
        label(protocol): scenario(
            Radio(HOPS),
            [
                Sender(stack, WINDOW, name, start)
                for name, start in zip(FLOWS, STARTS_S, strict=True)
            ],
            extent,
            watch,
        )
        for protocol, stack in STACKS.items()
    }


def cells(results: Results, contests: Contests) -> Iterator[Cell]:
    """What each flow got while all three sent, and how large windows became."""
    for protocol in STACKS:
        name = label(protocol)
        rates = [THROUGHPUT.by_seed(contests, name, flow) for flow in FLOWS]
        for flow, own in zip(FLOWS, rates, strict=True):
            ours = mean_interval(own.values(), (0.0, None))
            yield cell(TABLE, protocol, flow, THROUGHPUT.unit, ours)
        seeds = sorted(set.intersection(*(set(own) for own in rates)))
        indices = (jain([own[seed] or 0.0 for own in rates]) for seed in seeds)
        yield cell(TABLE, protocol, FAIRNESS, "index", mean_interval(indices, (1 / 3, 1.0)))
        largest = _largest(results, name)
        yield cell(TABLE, protocol, LARGEST, "segments", mean_interval(largest, (0.0, None)))


def _largest(results: Results, name: str) -> list[float]:
    runs = results.runs.filter(label=name, status="ok")["run"].implode()
    samples = results.scan("samples").filter(pl.col("run").is_in(runs))
    by_run = samples.group_by("run").agg(pl.col("cwnd_bytes").max() / 1000)
    return by_run.sort("run").collect()["cwnd_bytes"].to_list()
