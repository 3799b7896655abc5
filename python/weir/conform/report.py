"""The report of a conformance check: what does not hold, every row, and a picture per case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from weir.base import bounded
from weir.conform.outcome import Row, is_good
from weir.conform.words import by_stack, value_text
from weir.graphics.timeline import TimePanel, timeline
from weir.plots import Figure
from weir.report import summary
from weir.report.compose import with_provenance
from weir.report.html import slug
from weir.report.model import Cell, Report, ReportSection, ReportTable, ranges
from weir.results import manifest
from weir.results.results import INTERNAL, Results

_QUESTION = "Do these stacks meet the criteria of drafts, RFCs and bug reports?"
_SLICES = 400
"""Points of a curve."""

_TITLES: Mapping[str, tuple[str, str, float]] = {
    "goodput_mbps": ("Goodput", "Mbit/s", 1.0),
    "delivery_mbps": ("Delivery rate", "Mbit/s", 1.0),
    "pacing_mbps": ("Pacing rate", "Mbit/s", 1.0),
    "cwnd_bytes": ("Congestion window", "kB", 1e-3),
    "bytes_in_flight": ("In flight", "kB", 1e-3),
    "rtt_ms": ("RTT", "ms", 1.0),
    "retransmits": ("Retransmissions", "segments", 1.0),
}
"""Title, unit and factor of each column of `samples` in a picture."""

_UNITS: Mapping[str, tuple[str, float]] = {
    "bytes": ("kB", 1e-3),
    "mbps": ("Mbit/s", 1.0),
    "segments": ("segments", 1.0),
    "ms": ("ms", 1.0),
    "s": ("s", 1.0),
}
"""Unit and factor of an internal variable, by the end of its name."""


def compose_conform(results: Results) -> Report:
    """The report of the rows that are kept beside the results."""
    kept = bounded.read_json(results.path / manifest.CONFORM)
    rows: list[Row] = kept["rows"]
    bad = [row for row in rows if not is_good(row)]
    tables = [_table("Rows that are not as expected", bad, has_case=True)] if bad else []
    sections = [
        ReportSection(
            "Summary",
            points=[*summary.cautions(results), *by_stack(rows)],
            tables=tables,
        ),
        *_cases(results, rows, kept["pictures"]),
    ]
    return with_provenance(results, "Conformance", _QUESTION, sections)


def _cases(
    results: Results, rows: Sequence[Row], pictures: Sequence[Mapping[str, Any]]
) -> Iterator[ReportSection]:
    for picture in pictures:
        own = [r for r in rows if (r["suite"], r["case"]) == (picture["suite"], picture["case"])]
        first = own[0]
        figure = _figure(results, own, picture)
        yield ReportSection(
            f"{first['suite']} {first['case']}: {first['title']}",
            paragraphs=[first["procedure"], f"Source: {first['source']}.{_seeds(own)}"],
            tables=[_table("", own)],
            figures=[figure] if figure else [],
        )


def _figure(results: Results, rows: Sequence[Row], picture: Mapping[str, Any]) -> Figure | None:
    """The run that decides, of each stack."""
    runs: dict[str, int] = {}
    for row in sorted(rows, key=is_good):
        if row["decisive_run"] is not None:
            runs.setdefault(row["stack"], row["decisive_run"])
    if not runs:
        return None
    frame = pl.DataFrame(
        {"run": list(runs.values()), "series": list(runs)}, {"run": pl.UInt32, "series": pl.String}
    )
    data = (
        results.scan("samples").filter(pl.col("flow") == 0).join(frame.lazy(), on="run").collect()
    )
    panels = [
        TimePanel(title, unit, values, _level(picture["levels"].get(column)))
        for column in picture["columns"]
        for title, unit, scale in [_title(column)]
        if not (values := _curve(data, column, scale)).is_empty()
    ]
    if not panels:
        return None
    caption = "The run that decides, of each stack: the worst of its seeds."
    name = slug(f"{rows[0]['suite']}-{rows[0]['case']}")
    moments = [(float(at), str(text)) for at, text in picture["moments"]]
    return timeline(
        name,
        f"{rows[0]['case']}: {rows[0]['title']}",
        caption,
        panels,
        moments,
        list(runs.values()),
    )


def _title(column: str) -> tuple[str, str, float]:
    """Title, unit and factor of a column; an internal variable keeps its name."""
    name = column.removeprefix(INTERNAL)
    stem, _, end = name.rpartition("_")
    unit, scale = _UNITS.get(end, ("", 1.0))
    return _TITLES.get(column, (stem if unit else name, unit, scale))


def _curve(data: pl.DataFrame, column: str, scale: float) -> pl.DataFrame:
    width = float(data["t_s"].max() or 0.0) / _SLICES  # type: ignore[arg-type]
    if column not in data.columns or width <= 0:
        return pl.DataFrame()
    slices = ((pl.col("t_s") / width - 1e-6).floor() + 0.5) * width
    value = pl.col(column).cast(pl.Float64).mean() * scale
    means = data.group_by("series", t_s=slices, maintain_order=True).agg(value=value)
    return means.sort("series", "t_s").drop_nulls("value")


def _level(level: Sequence[Any] | None) -> tuple[float, str] | None:
    return None if level is None else (float(level[0]), str(level[1]))


def _table(title: str, rows: Sequence[Row], *, has_case: bool = False) -> ReportTable:
    """One line per row; the derivation of a bound is a note."""
    headers = ["verdict", *(["case"] if has_case else []), "stack", "measured", "criterion"]
    headers += ["value", "95 % interval", "margin", "reason"]
    lines = [
        [
            Cell(row["outcome"], "text", tone="" if is_good(row) else "strong"),
            *([Cell(f"{row['suite']} {row['case']}", "name")] if has_case else []),
            Cell(row["stack"], "text"),
            Cell(row["check"], "text"),
            Cell(row["criterion"], "text", note=_derivation(row)),
            Cell(value_text(row, "value")),
            Cell(_interval(row)),
            Cell(value_text(row, "margin")),
            Cell(row["reason"], "text"),
        ]
        for row in rows
    ]
    return ReportTable(title, headers, lines)


def _derivation(row: Row) -> str:
    return f"{row['check']}, {row['criterion']}: {row['origin']}." if row["origin"] else ""


def _seeds(rows: Sequence[Row]) -> str:
    seeds = sorted({seed for row in rows for seed in row["seeds"]})
    return f" Seeds: {ranges(seeds)}." if seeds else ""


def _interval(row: Row) -> str:
    found = row["measured"]
    if found["lo"] is None:
        return "–"
    return f"{found['lo']:.4g} to {found['hi']:.4g}"
