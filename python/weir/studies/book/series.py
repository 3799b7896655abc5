"""Figures 15 to 17 as cells: goodput and windows of two flows over time, slice by slice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from weir.cells.cells import Cells, cell
from weir.cells.protocol import Cell
from weir.experiments.staggered import goodputs, windows
from weir.results.results import Results
from weir.statistics.intervals import mean_interval
from weir.studies.book.experiment import TWO_FLOWS, Staggered

GOODPUT, WINDOW, UNFAIR = "fig-15", "fig-16", "fig-17"

DRAWN = ("wan-10g", "wan-10m", "wan-10m-10ms")
"""The chapter draws one network and does not say which; it calls the first the best for seeing the
dynamics, and behind the router of the others every algorithm has time to converge."""

_FEWEST = 3
"""Of repeats, for an interval to be drawn over time; the cells have it from two on."""

_SLICES = 60
"""A second each in a test of 60 s."""


def series_cells(results: Results, tests: Sequence[Staggered]) -> Iterator[Cell]:
    """Figures 15 and 16, one table per network."""
    pairs = [test for test in tests if test.timing.name == TWO_FLOWS.name]
    for network in DRAWN:
        drawn = [test for test in pairs if test.network.id == network and not test.is_mixed]
        for test in drawn:
            yield from goodput_cells(results, test, f"{GOODPUT} {network}")
        for test in drawn:
            sliced = windows(results, test.label, slice_s(test))
            yield from _cells(f"{WINDOW} {network}", "kB", test, sliced, "cwnd_kb")


def goodput_cells(results: Results, test: Staggered, table: str) -> Iterator[Cell]:
    """The goodput of each flow of one test."""
    sliced = goodputs(results, test.label, slice_s(test))
    yield from _cells(table, "Mbit/s", test, sliced, "mbps")


def slice_s(test: Staggered) -> float:
    """The length of a slice of time."""
    return test.timing.duration_s / _SLICES


def flow_name(test: Staggered, flow: int) -> str:
    """A flow as the row of a table."""
    return f"{test.who}: flow {flow + 1}, {test.stacks[flow]}"


def over_time(cells: Cells, row: str) -> pl.DataFrame:
    """A row of one of these tables for `weir.graphics.timeline`, without the name of its flow."""
    found = []
    for column in cells.columns():
        at = cells.at(row, column)
        if at is not None and at["ours"]["mean"] is not None:
            ours = at["ours"]
            # With two repeats an interval is twelve times as wide as they are apart.
            has_band = ours["n"] >= _FEWEST
            low, high = (ours[end] if has_band else ours["mean"] for end in ("lo", "hi"))
            found.append((float(column.removesuffix(" s")), ours["mean"], low, high))
    return pl.DataFrame(found, ["t_s", "value", "lo", "hi"], orient="row")


def _cells(
    table: str, unit: str, test: Staggered, sliced: pl.DataFrame, value: str
) -> Iterator[Cell]:
    for (flow, t_s), own in sliced.group_by("flow", "t_s", maintain_order=True):
        estimate = mean_interval(own[value], bounds=(0.0, None))
        column = f"{float(str(t_s)):.5g} s"
        yield cell(table, flow_name(test, int(str(flow))), column, unit, estimate)
