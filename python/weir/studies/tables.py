"""Cells of studies as tables of a report."""

from __future__ import annotations

from weir.report.model import Cell as TableCell
from weir.report.model import ReportTable
from weir.studies import claims
from weir.studies.cells import Cells, digits


def claims_table(cells: Cells) -> ReportTable:
    """The claims for a report."""
    own = cells.table(claims.TABLE)
    rows: list[list[TableCell | str]] = [
        [
            TableCell(str(found["row"]), "name"),
            str(found["measured"]),
            TableCell("–" if found["published"] is None else digits(found["published"])),
            TableCell(own.text(found["row"], claims.COLUMN)),
            TableCell(str(found["note"]), "text"),
        ]
        for found in own.all
    ]
    headers = ["expected", "measured as", "published", "ours", "verdict"]
    note = (
        "Ours: mean and 95 % interval. The interval of a ratio is from the ends of both, so wide."
    )
    return ReportTable("", headers, rows, note=note)


def value_table(cells: Cells, note: str, heading: str = "test", title: str = "") -> ReportTable:
    """A table for a report: what has no value shows why in a note."""
    rows: list[list[TableCell | str]] = []
    for row in cells.rows():
        values = (
            TableCell(cells.text(row, column), note=cells.note(row, column))
            for column in cells.columns()
        )
        rows.append([TableCell(row, "name"), *values])
    return ReportTable(title, [heading, *cells.columns()], rows, note=note)
