"""The cells of the study: what is used, how long a step takes to follow, how long queues are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from weir.curves import Curve, curves
from weir.responses import step_response
from weir.results import Results
from weir.stats import mean_interval
from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Contests, Extent
from weir.studies.joins import wait_cell
from weir.studies.steps.experiment import label
from weir.studies.steps.links import LINKS, Change, Link, goodput_of

USED, SETTLED, DELAY = "part of the capacity used", "time to settle", "queueing delay P95"

_FIRST_S = 2.0
"""The start of each run, left out of what is used: it is not about steps."""

_BIN_S = 0.5
_HOLD_S = 2.0
_TOLERANCE = 0.15
"""Settled is within this of the new rate for `_HOLD_S`: Reno's own sawtooth stays within it over a
buffer of one bandwidth-delay product and more."""


def study_cells(results: Results, extent: Extent) -> list[Cell]:
    """Every cell."""
    stacks, contests = extent.stacks, Contests(results)
    own = {(link, stack): _curves(results, link, stack) for link in LINKS for stack in stacks}
    return [
        *(_used(own[link, stack], link, stack) for stack in stacks for link in LINKS),
        *(
            cell
            for stack in stacks
            for link in LINKS
            for cell in _settled(own[link, stack], link, stack)
        ),
        *(_delay(contests, link, stack) for stack in stacks for link in LINKS),
    ]


def event_column(link: Link, change: Change) -> str:
    """The heading of what follows a change."""
    return f"{link.name}: {change.event}"


def _used(flows: Sequence[Curve], link: Link, stack: str) -> Cell:
    capacity = link.capacity_mbit(_FIRST_S)
    parts = [float(f.delivered(f.seen_s) - f.delivered(_FIRST_S)) / capacity for f in flows]
    return cell(USED, stack, link.name, "share", mean_interval(parts, (0.0, 1.0)))


def _settled(flows: Sequence[Curve], link: Link, stack: str) -> Iterator[Cell]:
    for change, end in link.phases():
        if change.event:
            waits = [
                step_response(
                    flow,
                    change.at_s,
                    min(end, flow.seen_s),
                    before_mbps=0.0,  # what counts is the new rate, not how large the step was
                    after_mbps=goodput_of(change.mbps),
                    tolerance=_TOLERANCE,
                    bin_s=_BIN_S,
                    hold_s=_HOLD_S,
                ).settling
                for flow in flows
            ]
            yield wait_cell((SETTLED, stack, event_column(link, change)), waits, "settled")


def _delay(contests: Contests, link: Link, stack: str) -> Cell:
    delays = contests.link(label(link, stack), "queue_delay_ms_p95").values()
    return cell(DELAY, stack, link.name, "ms", mean_interval(delays, (0.0, None)))


def _curves(results: Results, link: Link, stack: str) -> list[Curve]:
    """The flow of every repeat."""
    runs = results.runs.filter(label=label(link, stack), status="ok")["run"].implode()
    samples = results.scan("samples").filter(pl.col("run").is_in(runs)).collect()
    flows = results.flows.filter(pl.col("run").is_in(runs))
    return [flow for own in curves(samples, flows).values() for flow in own]
