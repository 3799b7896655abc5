"""The report of a radio validation: each group of rows with its picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from weir.base import bounded
from weir.graphics.lines import LineAxes, lines_if_any
from weir.plots import Figure
from weir.plots.on_air import on_air
from weir.radio_validation import FILE
from weir.radio_validation.rows import SHARE
from weir.radio_validation.scenes import GROUPS, Group
from weir.radio_validation.summary import (
    HEADINGS,
    REFERENCES,
    SOURCES,
    TITLE,
    UNITS,
    findings,
    table,
)
from weir.recordings.judge import Row
from weir.report.compose import with_provenance
from weir.report.model import Cell, Report, ReportSection, ReportTable
from weir.results.results import Results

OURS = "simulator"

_CHAINS = ("udp-chain", "tcp-chain")
_STATIONS = LineAxes("stations", "throughput, kbit/s", columns=3)
_AXES: dict[Group, LineAxes] = {
    "stop-and-wait": LineAxes("hops", "goodput, kbit/s", columns=3),
    "fhss": _STATIONS,
    "dsss": _STATIONS,
    "udp-chain": LineAxes("hops", "share of one hop's goodput"),
    "tcp-chain": LineAxes("hops", "share of one hop's goodput"),
}
_RATIO_RANGES: dict[Group, tuple[float, float]] = {
    "stop-and-wait": (0.99, 1.01),
    "fhss": (0.98, 1.02),
    "dsss": (0.98, 1.02),
    "tcp-chain": (0.75, 1.25),
}
"""As far as ours may be from the reference, where that varies."""

_ROUND = 8
"""Frames of a packet and its acknowledgement over one hop."""

_SCHEMA = {
    "panel": pl.String,
    "series": pl.String,
    "at": pl.Float64,
    "value": pl.Float64,
    "lo": pl.Float64,
    "hi": pl.Float64,
    "n": pl.Int64,
}


def compose_radio(results: Results) -> Report:
    """The report of the rows that are kept next to the results."""
    rows: list[Row] = bounded.read_json(results.path / FILE)["rows"]
    failing = [row for row in rows if row["verdict"] in ("differs", "inconclusive")]
    sections = [
        ReportSection("Findings", points=list(findings(rows))),
        ReportSection("Rows that do not hold", tables=[_table("", failing)] if failing else []),
        *(_section(group, rows, results) for group in GROUPS),
    ]
    full = [section for section in sections if not section.is_empty]
    question = "Do nodes that share a channel do what arithmetic, theory and papers say?"
    return with_provenance(results, "Validation of radio networks", question, full)


def _section(group: Group, rows: Sequence[Row], results: Results) -> ReportSection:
    own = [row for row in rows if row["kind"] == group]
    if not own:
        return ReportSection(HEADINGS[group])
    figures = _round(own, results) if group == "airtimes" else _curves(group, own, results)
    folded = replace(_table("Every row", own), is_folded=True)
    return ReportSection(HEADINGS[group], [SOURCES[group]], tables=[folded], figures=figures)


def _round(rows: Sequence[Row], results: Results) -> list[Figure]:
    """The second round of the first case that ran, frame by frame."""
    ran = _runs(rows, results)
    if ran.is_empty():
        return []
    run, case = ran["run"][0], ran["label"][0]
    frames = results.scan("frames").filter(pl.col("run") == run).sort("t_s").collect()
    caption = f"A packet and its acknowledgement in {case}; lengths in us."
    shown = frames.slice(_ROUND, _ROUND)
    return [on_air("airtimes", "A round over one hop", caption, shown, [run])]


def _curves(group: Group, rows: Sequence[Row], results: Results) -> list[Figure]:
    """Both sides, and one over the other."""
    drawn = [row for row in rows if row["metric"] == SHARE or group not in _CHAINS]
    runs = _runs(rows, results)["run"].to_list()
    values = pl.DataFrame(list(_values(group, drawn)), _SCHEMA, orient="row")
    ratios = pl.DataFrame(list(_ratios(group, drawn)), _SCHEMA, orient="row")
    axes = _AXES[group]
    caption = f"{REFERENCES[group]} and the simulator: where only one line is seen, they coincide."
    figures = lines_if_any(group, HEADINGS[group], caption, values, axes, runs)
    if group in _RATIO_RANGES:
        own = LineAxes(axes.x, "ratio", level=1.0, y_range=_RATIO_RANGES[group])
        title = "Simulator over reference"
        caption = "Beyond the ends of the axis no row holds."
        figures += lines_if_any(f"{group}-ratio", title, caption, ratios, own, runs)
    return figures


def _values(group: Group, rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    """The reference and ours at each place."""
    for row in rows:
        if row["reference"] is not None:
            yield (row["series"], REFERENCES[group], row["at"], row["reference"], None, None, None)
        if row["ours"] is not None:
            yield (row["series"], OURS, row["at"], row["ours"], *_bounds(row["ours_interval"]))


def _ratios(group: Group, rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    for row in rows:
        if row["ratio"] is not None:
            bounds = _bounds(row["ratio_interval"])
            yield (HEADINGS[group], row["series"], row["at"], row["ratio"], *bounds)


def _bounds(interval: Row | None) -> tuple[float | None, float | None, int]:
    return (interval["lo"], interval["hi"], interval["n"]) if interval else (None, None, 1)


def _runs(rows: Sequence[Row], results: Results) -> pl.DataFrame:
    names = list(dict.fromkeys(row["case"] for row in rows))
    return results.runs.filter(pl.col("label").is_in(names), status="ok")


def _table(title: str, rows: Sequence[Row]) -> ReportTable:
    headers, lines = table(rows)
    cells = [
        [
            Cell(case, "name"),
            Cell(metric, "text"),
            Cell(ours),
            Cell(reference),
            Cell(ratio),
            Cell(mark, "text", tone="strong" if row["holds"] is False else ""),
            Cell(tolerance or "reported only", "text"),
            Cell(row["note"], "text"),
        ]
        for row, (case, metric, ours, reference, ratio, mark, tolerance) in zip(
            rows, lines, strict=True
        )
    ]
    note = f"{TITLE}. {UNITS[:1].upper()}{UNITS[1:]}."
    return ReportTable(title, [*headers, "note"], cells, note=note)
