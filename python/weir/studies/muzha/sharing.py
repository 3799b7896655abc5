"""The pictures and tables of two flows on a cross."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from weir.plots.bars import BarAxes, bars
from weir.plots.figure import Figure
from weir.report.model import ReportSection
from weir.report.study import study_table
from weir.results import Results
from weir.studies.cells import Cells, runs_of
from weir.studies.muzha import cross
from weir.studies.muzha.experiment import hops_name

_SERIES = {0: "the first", 1: "the other"}
_FAIR = 1.0


def cross_section(results: Results, cells: Cells) -> ReportSection:
    """Throughput and fairness, published and ours."""
    runs = runs_of(results, "cross,")
    tables = [
        cross.table(hops, setting)
        for setting in cross.ALL_SETTINGS
        for hops in cross.HOPS
        if cells.table(cross.table(hops, setting)).all
    ]
    return ReportSection(
        "Two flows on a cross",
        paragraphs=[
            "Two chains cross in their middle node; each carries one flow. The slides pair Vegas "
            "and "
            "Muzha with NewReno; beside them stand two flows of one kind, for an uneven result "
            "says "
            "nothing of a protocol if two equal flows share as unevenly. The slides do not tell "
            "the "
            "window, so that all three are here; “routes known” is the widest on a network whose "
            "routes never fail. In the tables below throughputs are in kbit/s, delays in ms."
        ],
        figures=[_throughput(cells, runs), _fairness(cells, runs)],
        tables=[study_table(name, cells.table(name).all) for name in tables],
    )


def _throughput(cells: Cells, runs: tuple[int, ...]) -> Figure:
    rows = [
        (f"{cross.pair_name(pair)}, {setting.name}", hops_name(hops), *bar)
        for setting in cross.ALL_SETTINGS
        for pair in cross.PAIRS
        if pair[0] != pair[1]
        for hops in cross.HOPS
        for bar in _pair_bars(cells, pair, hops, setting)
    ]
    return bars(
        "cross-throughput",
        "Throughput on the cross, printed and ours",
        "Bars: ours, mean over the seeds with its 95 % interval. Black lines: what the slides "
        "print, "
        "the same in all windows, for they do not tell theirs.",
        _frame(rows),
        BarAxes("", "throughput, kbit/s", columns=2),
        runs,
    )


def _pair_bars(
    cells: Cells, pair: cross.Pair, hops: int, setting: cross.Setting
) -> Iterator[tuple[str, float | None, float | None, float | None, float | None]]:
    own = cells.table(cross.table(hops, setting))
    for number, protocol in enumerate(pair):
        row = cross.flow_name(protocol, pair[1 - number])
        yield _bar(own, protocol, row, "throughput")
    yield _bar(own, "both together", cross.pair_name(pair), cross.AGGREGATE)


def _fairness(cells: Cells, runs: tuple[int, ...]) -> Figure:
    rows = [
        (
            setting.name,
            hops_name(hops),
            *_bar(
                cells.table(cross.table(hops, setting)),
                cross.pair_name(pair),
                cross.pair_name(pair),
                cross.FAIRNESS,
            ),
        )
        for setting in cross.ALL_SETTINGS
        for hops in cross.HOPS
        for pair in cross.PAIRS
    ]
    return bars(
        "cross-fairness",
        "Jain's index on the cross, printed and ours",
        "1 is an even share, 0.5 is all for one. Bars: mean over the seeds of the index of each "
        "run; "
        "black lines: printed. Compare a pair with the controls, two flows of one kind.",
        _frame(rows),
        BarAxes("", "Jain's index", columns=2),
        runs,
    )


def _bar(
    own: Cells, series: str, row: str, column: str
) -> tuple[str, float | None, float | None, float | None, float | None]:
    ours, found = own.ours(row, column), own.at(row, column)
    published = None if found is None else found["published"]
    return series, ours.mean, ours.lo, ours.hi, published


def _frame(rows: Sequence[tuple[str | float | None, ...]]) -> pl.DataFrame:
    names = ("panel", "group", "series", "value", "lo", "hi", "published")
    kinds = (*[pl.String] * 3, *[pl.Float64] * 4)
    table = pl.DataFrame(rows, dict(zip(names, kinds, strict=True)), orient="row")
    return table.drop_nulls("value")
