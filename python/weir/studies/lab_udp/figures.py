"""The study's report: each published table with its throughputs, and the figures of the sources.

Everything is drawn from the cells, so that `weir report` can draw it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from weir.cells.cells import Cells
from weir.cells.plot import comparison
from weir.cells.protocol import Cell
from weir.cells.tables import claims_table, study_table
from weir.plots import Figure
from weir.report.html import slug
from weir.report.model import ReportSection
from weir.results.results import Results
from weir.scenario.source import SIM
from weir.studies.lab_udp.experiment import Experiment, columns
from weir.studies.lab_udp.published import SOURCES, PublishedFigure, Source, Table, load
from weir.studies.lab_udp.throughputs import SUFFIX

_CAPTION = (
    "As {source} draws it, from its numbers and from ours: the serial relay is the one that was "
    "used there, the delay line is a network with that delay. Where the lines of two panels have "
    "the same order, heights and slopes, ours repeats what was published; bars are 95 % intervals "
    "over our seeds."
)

_ROWS = (
    "Below each printed row stand ours: “serial” through a relay that handles one datagram after "
    "the other, as the reports' did, “delay line” through a network with that delay."
)

_QUANTITIES = {"s": "time", "%": "loss", "ms": "delay", "b": "size"}


def sections(results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
    """One section for each published table, and one for what the sources conclude."""
    tables = [
        _section(results, rows, source, table)
        for source in map(load, SOURCES)
        for table in source.tables
    ]
    tables[0] = replace(tables[0], paragraphs=[_ROWS])
    return [*tables, ReportSection("What the reports conclude", tables=[claims_table(Cells(rows))])]


def _section(results: Results, rows: Sequence[Cell], source: Source, table: Table) -> ReportSection:
    times = [row for row in rows if row["table"] == table.id]
    speeds = [row for row in rows if row["table"] == f"{table.id}{SUFFIX}"]
    tables = [study_table("Time", times)]
    if speeds:
        tables.append(study_table("Throughput", speeds))
    figures = list(_figures(results, [*times, *speeds], source, table))
    return ReportSection(f"{table.title}, report {source.id}", tables=tables, figures=figures)


def _figures(
    results: Results, rows: Sequence[Cell], source: Source, table: Table
) -> Iterator[Figure]:
    """The source's own figures of a table: times above, throughputs below where it prints them."""
    for drawing in source.drawings:
        if drawing.table == table.id:
            own = [row for row in rows if row["row"] in drawing.rows]
            in_order = sorted(own, key=lambda row: drawing.rows.index(str(row["row"])))
            figure = comparison(
                slug(f"{source.id} {drawing.name}"),
                sorted(in_order, key=lambda row: str(row["table"])),
                title=f"Source {source.id}, {drawing.name}: {drawing.title}",
                caption=_CAPTION.format(source=f"source {source.id}"),
                quantities={**_QUANTITIES, source.throughput_unit: "throughput"},
            )
            yield replace(figure, runs=_runs(results, source, table, drawing))


def _runs(
    results: Results, source: Source, table: Table, drawing: PublishedFigure
) -> tuple[int, ...]:
    """Those behind the rows that are drawn."""
    worlds = dict.fromkeys(str(case.get("world", SIM)) for case in results.cases)
    labels = [
        Experiment(source.id, row.experiment, table.conditions(place)).label(column)
        for row in table.rows
        if row.name in drawing.rows
        for place in range(len(table.columns))
        for world in worlds
        for column in columns(world)
    ]
    ok = results.runs.filter(pl.col("status") == "ok", pl.col("label").is_in(labels))
    return tuple(ok["run"])
