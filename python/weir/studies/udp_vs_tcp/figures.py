"""The tables with ours below each row, curves of time over size, and a map of what was complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from weir.plots.figure import Figure
from weir.plots.heat import HeatAxes, heat_map
from weir.plots.lines import LineAxes, lines_if_any
from weir.report.cells import claims_table
from weir.report.html import slug
from weir.report.model import ReportSection
from weir.report.study import study_table
from weir.results import Results
from weir.studies import Cell
from weir.studies.cells import Cells, runs_of
from weir.studies.udp_vs_tcp.experiment import PACKETS, SIZES
from weir.studies.udp_vs_tcp.measures import seconds
from weir.studies.udp_vs_tcp.published import Table, load

_AXES = LineAxes("file", "time, s", is_y_log=True)
_MAP_AXES = HeatAxes("", "", "transfers that failed", 0.0, 0.5, 1.0, ".0%")
_OF = 5
"""Number of transfers behind each published count."""


def sections(results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
    """What arrived everywhere, then setting by setting how long it took."""
    source, cells = load(), Cells(rows)
    return [
        _complete(results, cells, source.tables),
        *(_setting(results, cells.table(table.id), table) for table in source.tables),
        ReportSection("What the source concludes", tables=[claims_table(cells)]),
    ]


def _complete(results: Results, cells: Cells, tables: Sequence[Table]) -> ReportSection:
    """Of the reliable UDP alone: the others are in the tables."""
    found = [*_printed_counts(cells, tables), *_own_counts(cells, tables)]
    data = pl.DataFrame(found, ["panel", "row", "column", "value", "text"], orient="row")
    caption = (
        "How many of the transfers in a cell gave an intact file. Words are the source's; where it "
        "prints a time and no count, there is a question mark. What has no cell was not tried."
    )
    title = "Files that reliable UDP carried whole"
    figure = heat_map("complete", title, caption, data, _MAP_AXES, runs_of(results, ""))
    return ReportSection("What arrived", figures=[figure])


_Count = tuple[str, str, str, float | None, str]


def _printed_counts(cells: Cells, tables: Sequence[Table]) -> Iterator[_Count]:
    for table, cell in _reliable(cells, tables):
        printed, count = cell["published"], cell["published_complete"]
        if count is not None:
            yield _count("published", table, cell, 1 - count / _OF, f"{count}/{_OF}")
        elif isinstance(printed, float):
            yield _count("published", table, cell, 0.5, "?")
        else:
            failed = None if printed is None else 1.0
            yield _count("published", table, cell, failed, _short(printed or ""))


def _own_counts(cells: Cells, tables: Sequence[Table]) -> Iterator[_Count]:
    for table, cell in _reliable(cells, tables):
        complete, tried = cell["complete"], cell["tried"]
        failed = 1 - complete / tried if tried else None
        yield _count("ours", table, cell, failed, f"{complete}/{tried}")


def _reliable(cells: Cells, tables: Sequence[Table]) -> Iterator[tuple[Table, Cell]]:
    for table in tables:
        for cell in cells.table(table.id).all:
            if str(cell["row"]).startswith("UDPR ("):
                yield table, cell


def _count(panel: str, table: Table, cell: Cell, failed: float | None, text: str) -> _Count:
    packet = str(cell["row"]).removeprefix("UDPR (").removesuffix(")")
    return panel, f"{table.setting}, {packet}", str(cell["column"]), failed, text


def _short(printed: str) -> str:
    """A word of the source that fits a cell."""
    return "too long" if printed.startswith("beyond") else printed.rpartition("/ ")[2]


def _setting(results: Results, own: Cells, table: Table) -> ReportSection:
    title = f"{table.setting[:1].upper()}{table.setting[1:]}"
    figures = _figures(results, own, table)
    return ReportSection(title, tables=[study_table(table.id, own.all)], figures=figures)


def _figures(results: Results, own: Cells, table: Table) -> list[Figure]:
    caption = (
        "Published times as printed; ours are means with 95 % intervals. Only where all "
        "files of a cell arrived intact does a point of ours stand."
    )
    data = pl.concat([_frame(own, packet) for packet in PACKETS])
    return lines_if_any(
        f"time-{slug(table.setting)}",
        f"Time to carry a file, {table.title}",
        caption,
        data,
        _AXES,
        runs_of(results, f"{table.setting}, "),
    )


def _frame(own: Cells, packet: str) -> pl.DataFrame:
    """One panel: reliable transports, published and ours, over the sizes."""
    rows = []
    for name in ("UDPR", "TCP", "TCP bbr"):
        for size in SIZES:
            cell = own.at(f"{name} ({packet})", size)
            if cell is None:
                continue
            printed, ours = seconds(cell), cell["ours"]
            if printed:
                rows.append((packet, f"{name}, published", size, printed, None, None, 1))
            if cell["tried"] and cell["complete"] == cell["tried"]:
                place = (packet, f"{name}, ours", size)
                rows.append((*place, ours["mean"], ours["lo"], ours["hi"], ours["n"]))
    schema = {
        **dict.fromkeys(("panel", "series", "at"), pl.String),
        **dict.fromkeys(("value", "lo", "hi"), pl.Float64),
        "n": pl.Int64,
    }
    return pl.DataFrame(rows, schema, orient="row")
