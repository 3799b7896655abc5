"""The pictures and tables of levels, grid, random loss, moving nodes and sensitivity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from weir.plots.dots import DotAxes, dots
from weir.plots.figure import Figure
from weir.plots.heat import HeatAxes, heat_map
from weir.plots.lines import LineAxes, lines
from weir.report.cells import value_table
from weir.report.model import ReportSection, ReportTable
from weir.results import Results
from weir.studies.cells import Cells, frame, runs_of
from weir.studies.muzha import levels, losses, mobility, sensitivity
from weir.studies.muzha.experiment import WINDOWS

_MEANS = "Mean and 95 % interval."
_SPREAD = 0.3
"""Half of the range of the grid's colours."""


def parameter_sections(results: Results, cells: Cells) -> Iterator[ReportSection]:
    """What the answer depends on, before what disturbs it."""
    yield _sensitivity(results, cells)
    yield _levels(results, cells)
    yield _grid(results, cells)
    yield _losses(results, cells)
    yield _mobility(results, cells)


def _sensitivity(results: Results, cells: Cells) -> ReportSection:
    own = cells.table(sensitivity.TABLE)
    groups = {name: variant.of or "nothing" for name, variant in sensitivity.VARIANTS.items()}
    networks = cells.table(sensitivity.NETWORK_TABLE)
    return ReportSection(
        "What was never published",
        paragraphs=[
            "The slides give the table of indices, and neither what routers measure nor how a "
            "sender "
            "applies it in detail. Each row below changes one thing that is ours. “Thresholds: "
            "half” "
            "lets routers see spare capacity sooner; “signal: medium” watches the carrier in place "
            "of the queue; “version 2” is our reading of the last slide."
        ],
        figures=[
            _dots(own, groups, "sensitivity", "Muzha's throughput, one setting changed", results),
            _dots(
                networks,
                dict.fromkeys(sensitivity.NETWORKS, "network"),
                "networks",
                "Muzha's throughput on other networks",
                results,
            ),
        ],
        tables=[
            value_table(own, f"Ratios to NewReno on the same seeds. {_MEANS}", "Muzha with"),
            value_table(
                networks, f"Ratios to NewReno on the same network. {_MEANS}", "network with"
            ),
        ],
    )


def _dots(own: Cells, groups: dict[str, str], name: str, title: str, results: Results) -> Figure:
    rows = []
    for window in sensitivity.WINDOWS:
        for row in own.rows():
            ours = own.ours(row, sensitivity.column("throughput", window))
            rows.append((f"window {window}", row, groups[row], ours.mean, ours.lo, ours.hi))
    names = ("panel", "row", "group", "value", "lo", "hi")
    kinds = (*[pl.String] * 3, *[pl.Float64] * 3)
    data = pl.DataFrame(rows, dict(zip(names, kinds, strict=True)), orient="row")
    return dots(
        f"{name}-throughput",
        title,
        "Throughput over NewReno's, chains of the lengths named above together, with its 95 % "
        "interval. Right of the dashed line Muzha carries more.",
        data.drop_nulls("value"),
        DotAxes("times NewReno", 1.0),
        runs_of(results, "variant," if name == sensitivity.TABLE else "network,", "chain,"),
    )


def _levels(results: Results, cells: Cells) -> ReportSection:
    own = cells.table(levels.LEVELS_TABLE)
    figure = lines(
        "levels",
        "Throughput by number of levels",
        "Mean over the lengths named in the table's notes. The slides choose five.",
        frame(own, "mean over the lengths", [float(c.split()[0]) for c in own.columns()]),
        LineAxes("levels", "throughput, kbit/s", columns=1),
        runs_of(results, *(f"{count} levels" for count in levels.LEVELS), "chain, Muzha"),
    )
    return ReportSection(
        "How many levels",
        paragraphs=[
            "Three levels only halve, hold and double; seven also change the window by one and "
            "by two "
            "segments. What other numbers than five mean is ours."
        ],
        figures=[figure],
        tables=[value_table(own, f"kbit/s. {_MEANS}", "receiver window")],
    )


def _grid(results: Results, cells: Cells) -> ReportSection:
    rows = [
        (family, row, column, own.mean(row, column))
        for family in levels.FAMILIES
        for own in [cells.table(levels.grid_table(family))]
        for row in own.rows()
        for column in own.columns()
    ]
    names = ("panel", "row", "column", "value")
    kinds = (*[pl.String] * 3, pl.Float64)
    data = pl.DataFrame(rows, dict(zip(names, kinds, strict=True)), orient="row")
    figure = heat_map(
        "grid",
        "Increase and decrease",
        "Each cell: throughput over NewReno's on the same lengths at window "
        f"{levels.GRID_WINDOW}. Indices 4 and 5 take the increase of the row, 1 and 2 the decrease "
        "of the column, once per round trip. Orange is more than NewReno.",
        data,
        HeatAxes("increase", "decrease", "times NewReno", 1 - _SPREAD, 1, 1 + _SPREAD),
        runs_of(results, "grid,"),
    )
    tables = [
        value_table(
            cells.table(levels.finalists_table(window)),
            f"Over NewReno's, all lengths of this part together. {_MEANS}",
            "setting",
            f"The slides' finalists, window {window}",
        )
        for window in WINDOWS
    ]
    return ReportSection(
        "What an index does",
        paragraphs=[
            "The slides try three increases with three decreases in each of four families, "
            "additive "
            "or multiplicative, and end with AIMD(1, 0.8), AIAD(1, 3), MIMD(1.125, 0.8) and "
            "MIAD(1.125, 3)."
        ],
        figures=[figure],
        tables=tables,
    )


def _losses(results: Results, cells: Cells) -> ReportSection:
    return ReportSection(
        "Random loss",
        paragraphs=[
            "Frames that arrive damaged are sent again by the MAC, up to its limits; packets "
            "that are "
            "lost behind it are seen by the transport only. Muzha leaves its window alone if "
            "none of "
            "three duplicate acknowledgements carries an index that slows down."
        ],
        figures=[
            _loss_figure(cells, "throughput", "throughput, kbit/s", results),
            _loss_figure(cells, losses.GAIN, "times NewReno", results, 1.0),
        ],
        tables=[
            table
            for kind in losses.KINDS
            for hops in losses.HOPS
            for table in _tables(cells, [losses.table("throughput", kind, hops)], "kbit/s.")
        ],
    )


def _loss_figure(
    cells: Cells, quantity: str, y: str, results: Results, level: float | None = None
) -> Figure:
    frames = []
    for hops in losses.HOPS:
        for kind in losses.KINDS:
            own = cells.table(losses.table(quantity, kind, hops))
            places = [losses.percent_of(column) for column in own.columns()]
            frames.append(frame(own, f"{kind} lost, {hops} hops", places))
    return lines(
        f"loss-{quantity}",
        f"Random loss: {'gain over NewReno' if level else quantity}",
        "Mean over the seeds with its 95 % interval. All panels have the same axes.",
        pl.concat(frames),
        LineAxes("lost on each hop, %", y, level=level),
        runs_of(results, *(f"{percent:g} %" for percent in losses.RATES), "nothing lost"),
    )


def _mobility(results: Results, cells: Cells) -> ReportSection:
    figures = [
        _mobile_figure(cells, "throughput", "throughput, kbit/s", results),
        _mobile_figure(cells, mobility.GAIN, "times NewReno", results, 1.0),
    ]
    quantities = {
        "throughput": "kbit/s.",
        mobility.GAIN: "Over NewReno's on the same movements.",
        "timeouts": "Retransmission timeouts per run.",
        "route changes": "Changes of the route at either end, per run.",
    }
    tables = [
        table
        for quantity, note in quantities.items()
        for name in mobility.GROUNDS
        for table in _tables(cells, [mobility.table(quantity, name)], note)
    ]
    return ReportSection(
        "Moving nodes",
        paragraphs=[
            "Thirty nodes wander over 1500 m by 300 m without a rest. NewReno and Muzha take a "
            "broken "
            "route for congestion; TCP-F, ELFN, ATCP and BuS are NewReno which routers tell that a "
            "route broke, and which waits. “TCP-F, 1 s” gives up waiting for a route after that "
            "time, "
            "not after 10 s; “ELFN, 0.2 s” tries five times a second, not every 2 s."
        ],
        figures=figures,
        tables=tables,
    )


def _mobile_figure(
    cells: Cells, quantity: str, y: str, results: Results, level: float | None = None
) -> Figure:
    frames = []
    for name in mobility.GROUNDS:
        own = cells.table(mobility.table(quantity, name))
        frames.append(frame(own, name, [float(column.split()[0]) for column in own.columns()]))
    return lines(
        f"mobility-{quantity}",
        f"Moving nodes: {'gain over NewReno' if level else quantity}",
        "Mean over patterns of movement with its 95 % interval; all senders meet the same "
        "patterns.",
        pl.concat(frames),
        LineAxes("mean speed, m/s", y, level=level),
        runs_of(results, "mobility,"),
    )


def _tables(cells: Cells, names: Sequence[str], note: str) -> Iterator[ReportTable]:
    for name in names:
        own = cells.table(name)
        if own.all:
            yield value_table(own, f"{note} {_MEANS}", "protocol", name.capitalize())
