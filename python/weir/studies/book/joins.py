"""What the chapter asks of its 2-flow and 3-flow tests, as cells: one row per test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from weir.cells.cells import cell
from weir.cells.protocol import Cell
from weir.dynamics import criteria
from weir.experiments.joins import joins, wait_cell
from weir.results.results import Results
from weir.statistics.intervals import Estimate, mean_interval
from weir.studies.book.experiment import TWO_FLOWS, Staggered

TWO, THREE, MIXED = "2-flow", "3-flow", "mixed"

TABLES = {
    TWO: "The 2-flow test, same algorithm",
    THREE: "The 3-flow test, same algorithm",
    MIXED: "Flows of different algorithms",
}

ADAPTS, CROSSES, RELEASED = "adapts, s", "crosses, s", "reclaims, s"
SHARE, JAIN, SPREAD = "share", "Jain", "share, range"
LOST, DELAY, UTILISATION = "retransmitted, %", "queue, ms", "used, %"

MEANING = (
    "Adapts: from the start of the newest flow to the first second from which on the goodputs of "
    f"all flows are within {criteria.EPSILON:.0%} of the largest for five seconds "
    "(ε-convergence). Crosses: until the newest flow first has more than the first. Reclaims: from "
    "the end of the newest flow until the others have 90 % of what it had, and keep it for 2.5 s. "
    "Share: of the newest flow, over the second half of its time; Jain: the fairness index of all "
    "flows over the same time. Range: how far the smallest and the largest share of single repeats "
    "are apart, whose start times differ by 0.1 s at most. Queue: mean waiting time at the "
    "bottleneck; used: its utilisation. Where the test's times are scaled, so are these. Means "
    "with 95 % intervals; a time that was not reached in every repeat has a note and no mean."
)


def join_cells(results: Results, tests: Sequence[Staggered]) -> Iterator[Cell]:
    """One row per test: how fast flows adapt and release, how fair, how congested, how steady."""
    per_run = results.per_run
    for test in tests:
        found = joins(results, test.label, test.timing)
        row, table = f"{test.network.id}, {test.who}", _table(test)
        yield wait_cell((table, row, ADAPTS), [join.adapts() for join in found], "converged")
        yield wait_cell((table, row, CROSSES), [join.crosses() for join in found], "crossed")
        yield wait_cell((table, row, RELEASED), [join.reclaims() for join in found], "reclaimed")
        shares = [join.share() for join in found]
        yield cell(table, row, SHARE, "share", mean_interval(shares, (0.0, 1.0)))
        jains = mean_interval([join.jain() for join in found], (0.0, 1.0))
        yield cell(table, row, JAIN, "", jains)
        yield _range(table, row, shares)
        own = per_run.filter(label=test.label)
        yield _percent(table, row, LOST, own["retransmit_ratio"])
        delay = mean_interval(own["queue_delay_ms_mean"], (0.0, None))
        yield cell(table, row, DELAY, "ms", delay)
        yield _percent(table, row, UTILISATION, own["utilisation"])


def most_uneven(tests: Sequence[Staggered], cells: Sequence[Cell]) -> Staggered:
    """The mixed 2-flow test in which the second flow takes most."""
    shares: Mapping[str, float] = {
        cell["row"]: cell["ours"]["mean"] or 0.0
        for cell in cells
        if (cell["table"], cell["column"]) == (MIXED, SHARE)
    }
    mixed = [test for test in tests if test.is_mixed and len(test.stacks) == len(TWO_FLOWS.flows)]
    return max(mixed, key=lambda test: shares[f"{test.network.id}, {test.who}"])


def _table(test: Staggered) -> str:
    if test.is_mixed:
        return MIXED
    return TWO if test.timing.name == TWO_FLOWS.name else THREE


def _range(table: str, row: str, shares: Sequence[float | None]) -> Cell:
    """How far single repeats lie apart: start times must not decide who gets what."""
    present = [share for share in shares if share is not None]
    mean = max(present) - min(present) if len(present) > 1 else None
    note = f"{min(present):.2f} to {max(present):.2f}" if present else ""
    return cell(table, row, SPREAD, "", Estimate(mean, None, None, len(present)), note=note)


def _percent(table: str, row: str, column: str, values: pl.Series) -> Cell:
    return cell(table, row, column, "%", mean_interval(values * 100, (0.0, 100.0)))
