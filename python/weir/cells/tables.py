"""Cells of studies as tables of a report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from weir.cells import claims, verdicts
from weir.cells import plot as figures
from weir.cells.cells import Cells, count_text, decimals, digits, spread_text
from weir.cells.protocol import PUBLISHED
from weir.cells.protocol import sources as value_sources
from weir.report.html import slug
from weir.report.model import Cell as TableCell
from weir.report.model import ReportSection, ReportTable

Rows = Sequence[Mapping[str, Any]]
"""Cells as `study.json` keeps them."""

MOST_VERDICTS = 10
"""Claims at the top of a report."""


def verdict_table(
    cells: Rows, first: Sequence[str] = (), reasons: Mapping[str, str] = MappingProxyType({})
) -> ReportTable:
    """At most ten claims and what becomes of each; `first` are patterns of those to show.

    Without patterns those that differ come first, then those that agree. `reasons` says of claims
    why they do not agree.
    """
    own = [dict(found) for found in cells if found["table"] == claims.TABLE]
    named = [c for pattern in first for c in own if re.fullmatch(pattern, str(c["row"]))]
    by_verdict = sorted(own, key=lambda c: _ORDER.index(claims.verdict_of(c)))
    shown = (named or by_verdict)[:MOST_VERDICTS]
    rows: list[list[TableCell | str]] = []
    for found in shown:
        ratio = verdicts.ratio(found["published"], found["ours"])
        verdict = claims.verdict_of(found)
        rows.append(
            [
                TableCell(str(found["row"]), "name"),
                str(found["measured"]),
                TableCell("–" if found["published"] is None else digits(found["published"])),
                TableCell(Cells([found]).text(found["row"], claims.COLUMN)),
                TableCell("" if ratio is None else f"{ratio:.2f}"),
                TableCell(verdict, "text", tone=verdicts.TONES.get(verdict, "open")),
                *([reasons.get(str(found["row"]), "")] if reasons else []),
            ]
        )
    headers = ["claim", "measured as", "printed", "ours", "ratio", "verdict"]
    headers += ["because"] if reasons else []
    more = len(own) - len(shown)
    note = "Ours: mean and 95 % interval."
    return ReportTable(
        "", headers, rows, note=f"{note} {more} further claims stand below." if more else note
    )


def claims_table(cells: Cells) -> ReportTable:
    """The claims for a report."""
    own = cells.table(claims.TABLE)
    rows: list[list[TableCell | str]] = [
        [
            TableCell(str(found["row"]), "name"),
            str(found["measured"]),
            TableCell("–" if found["published"] is None else digits(found["published"])),
            TableCell(own.text(found["row"], claims.COLUMN)),
            TableCell(
                str(found["note"]),
                "text",
                tone=verdicts.TONES.get(claims.verdict_of(found), "open"),
            ),
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


def table_sections(cells: Rows, runs: tuple[int, ...]) -> Iterator[ReportSection]:
    """One section per published table: the table with ours below each row, and its picture.

    A study is one plan, so `runs`, all of it, is what each picture was made from.
    """
    for name in dict.fromkeys(cell["table"] for cell in cells):
        own = [cell for cell in cells if cell["table"] == name]
        figure = replace(figures.comparison(slug(name), own), runs=runs)
        drawn = [] if figure.data.is_empty() else [figure]
        yield ReportSection(str(name), tables=[study_table(str(name), own)], figures=drawn)


def study_table(name: str, cells: Rows, interval: str = "over the seeds") -> ReportTable:
    """A published table; under each of its rows our values. `interval` says what theirs is of."""
    columns = list(dict.fromkeys(str(cell["column"]) for cell in cells))
    sources = value_sources(cells)
    rows: list[list[TableCell | str]] = []
    for row in dict.fromkeys(str(cell["row"]) for cell in cells):
        by_column = {str(cell["column"]): cell for cell in cells if str(cell["row"]) == row}
        for source in sources:
            values = (_value(by_column.get(column, {}), source) for column in columns)
            heading = TableCell(row, "name") if source == sources[0] else TableCell("", "text")
            rows.append([heading, figures.heading(source), *values])
    units = {str(cell.get("unit", "")) for cell in cells}
    unit = units.pop() if len(units) == 1 else ""
    title = f"{name}, in {unit}" if unit else name
    note = (
        f"Mean ± half of the 95 % interval {interval}; where it is lopsided, how far it reaches "
        "below and above."
    )
    if sources[:1] == [PUBLISHED]:
        note += (
            " In brackets: ours over the printed number, and the verdict: in our interval, within "
            "10 %, 25 % or a factor of 2, off, or too few repeats."
        )
    return ReportTable(title, ["row", "source", *columns], rows, note=note)


def _value(cell: Mapping[str, Any], source: str) -> TableCell:
    value, count = cell.get(source), count_text(cell, source)
    if not isinstance(value, Mapping):
        text = "–" if value is None else f"{value}{count}"
        return TableCell(text, note=str(cell.get("note") or ""), tone="strong")
    mean = value.get("mean")
    if mean is None:
        return TableCell(f"–{count}")
    digits = decimals(mean)
    spread = spread_text(mean, value.get("lo"), value.get("hi"), digits)
    text = f"{mean:.{digits}f}{spread}{count}"
    ratio = verdicts.ratio(cell.get(PUBLISHED), value)
    if ratio is None:
        return TableCell(text)
    verdict = verdicts.of_number(cell[PUBLISHED], value)
    tone = verdicts.TONES.get(verdict, "open")
    if verdict == verdicts.TOO_FEW and spread:
        text = f"{mean:.{digits}f}{count}"
    return TableCell(f"{text} ({ratio:.2f}, {_SHORT.get(verdict, verdict)})", tone=tone)


_ORDER = ("differs", "agrees", "inconclusive")
_SHORT = {
    verdicts.IN_INTERVAL: "in",
    verdicts.NEAR: "10 %",
    verdicts.CLOSE: "25 %",
    verdicts.FACTOR: "factor 2",
    verdicts.TOO_FEW: "few",
}
