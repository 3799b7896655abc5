"""The scatters of the study, one panel per path, and its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from weir.plots.figure import Figure
from weir.plots.scatter import ScatterAxes, scatter
from weir.report.cells import claims_table, value_table
from weir.report.model import ReportSection
from weir.results import Results
from weir.stats import Estimate
from weir.studies.cells import Cells, runs_of
from weir.studies.pantheon.experiment import FLOWS, flows_name
from weir.studies.pantheon.measures import DELAY, LOSS, OVERALL, THROUGHPUT, USED, table
from weir.studies.pantheon.paths import PATHS

_ALL = "all 18 paths"
_CROWD = 8
"""With more schemes than this, two panels stand side by side, not three."""


def sections(results: Results, cells: Cells) -> Sequence[ReportSection]:
    """For one flow and for three: over all paths, then each path, then the numbers."""
    for_each = [section for flows in FLOWS for section in _of(results, cells, flows)]
    return [*for_each, ReportSection("What was expected", tables=[claims_table(cells)])]


def _of(results: Results, cells: Cells, flows: int) -> Iterator[ReportSection]:
    count = flows_name(flows)
    overall = value_table(
        cells.table(table(OVERALL, flows)),
        "Over the 18 paths: mean utilisation, P95 one-way delay over that of a path without queues "
        "(geometric mean), mean loss; with 95 % intervals over the seeds.",
        "scheme",
    )
    how = (
        "Up is more throughput and right is less delay: the best is the upper right corner. The "
        "dashed line is what the link carries. Crosses are 95 % intervals of the mean."
    )
    yield ReportSection(
        f"{count.capitalize()} over every path",
        paragraphs=[how],
        figures=[_overall(results, cells, flows), _paths(results, cells, flows)],
        tables=[overall],
    )
    titles = {THROUGHPUT: "Mbit/s", DELAY: "milliseconds", LOSS: "share", USED: "share"}
    yield ReportSection(
        f"{count.capitalize()}: the numbers",
        tables=[
            value_table(
                cells.table(table(kind, flows)),
                f"Mean and 95 % interval, {unit}.",
                "path",
                kind.capitalize() if kind != DELAY else kind,
            )
            for kind, unit in titles.items()
        ],
    )


def _overall(results: Results, cells: Cells, flows: int) -> Figure:
    """One panel over all paths."""
    own = cells.table(table(OVERALL, flows))
    used, stretch, _ = own.columns()
    rows = [
        _row(_ALL, stack, own.ours(stack, stretch), own.ours(stack, used)) for stack in own.rows()
    ]
    return scatter(
        f"overall-{flows}",
        f"All paths at a glance, {flows_name(flows)}",
        "Utilisation of the link, mean over the 18 paths, against P95 one-way delay over the delay "
        "of the path without queues, geometric mean.",
        _frame(rows),
        {_ALL: 1.0},
        ScatterAxes(
            "P95 delay over the path's own (less \N{RIGHTWARDS ARROW})", "utilisation", columns=1
        ),
        runs_of(results, ""),
    )


def _paths(results: Results, cells: Cells, flows: int) -> Figure:
    """One panel per path, in real units."""
    throughput = cells.table(table(THROUGHPUT, flows))
    delay = cells.table(table(DELAY, flows))
    rows = [
        _row(path.title, stack, delay.ours(path.title, stack), throughput.ours(path.title, stack))
        for path in PATHS
        for stack in throughput.columns()
    ]
    return scatter(
        f"paths-{flows}",
        f"Throughput against delay, {flows_name(flows)}",
        "Mean throughput where packets come out, against the 95th percentile of the time that "
        "they take one way. The axis of delay is logarithmic and grows to the left, as the "
        "Pantheon draws it.",
        _frame(rows),
        {path.title: path.up.mbps for path in PATHS},
        ScatterAxes(
            "P95 one-way delay, ms (less \N{RIGHTWARDS ARROW})",
            "Mbit/s",
            columns=3 if len(throughput.columns()) <= _CROWD else 2,
        ),
        runs_of(results, ""),
    )


Ends = tuple[float | None, float | None, float | None]
Row = tuple[str, str, *Ends, *Ends]


def _row(panel: str, series: str, x: Estimate, y: Estimate) -> Row:
    return (panel, series, *_ends(x), *_ends(y))


def _ends(value: Estimate) -> Ends:
    """The mean and its interval, which is a point where there is none."""
    return (
        value.mean,
        value.mean if value.lo is None else value.lo,
        value.mean if value.hi is None else value.hi,
    )


def _frame(rows: Sequence[Row]) -> pl.DataFrame:
    names = ("x", "x_lo", "x_hi", "y", "y_lo", "y_hi")
    schema = {"panel": pl.String, "series": pl.String, **dict.fromkeys(names, pl.Float64)}
    return pl.DataFrame(rows, schema, orient="row").drop_nulls(["x", "y"])
