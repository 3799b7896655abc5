"""The report of a validation: what holds, what does not, and every case in a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from weir.base import bounded
from weir.graphics.overlay import OURS, READING, THEIRS, overlay
from weir.plots import Figure
from weir.recordings.judge import SAMPLED, Row
from weir.report.compose import with_provenance
from weir.report.html import slug
from weir.report.model import Cell, Report, ReportSection, ReportTable
from weir.results import parquet
from weir.results.results import Results
from weir.results.series import series
from weir.validation import FILE, SERIES, spread
from weir.validation.plot import agreement
from weir.validation.summary import KINDS, TITLE, TITLES, UNITS, findings, table, with_interval

_MOST_FIGURES = 60
"""With more cases in both worlds, only those get a picture that do not hold."""

_ONLY_FAILING = "Only cases with a row that does not hold are drawn."

_AGREEMENT = (
    "Left, each dot is a flow: its goodput against that of the same flow in Linux, with the "
    "tolerance. Right, its retransmissions; on the dashed line both are equal."
)

_PAIRS = {
    "case": pl.String,
    "controller": pl.String,
    "group": pl.String,
    "goodput_percent": pl.Float64,
    "ours": pl.Float64,
    "linux": pl.Float64,
}


def compose_validation(results: Results) -> Report:
    """The report of the rows that are kept next to the results."""
    kept = bounded.read_json(results.path / FILE)
    rows, kernels = kept["rows"], " and ".join(kept["kernels"])
    failing = [row for row in rows if row["verdict"] in ("differs", "inconclusive")]
    overview = ReportTable(TITLE, *table(rows), note=f"{UNITS[:1].upper()}{UNITS[1:]}.")
    spreads = spread.by_controller(rows)
    many = len(results.cases) > _MOST_FIGURES
    drawn = {row["case"] for row in failing} if many else {row["case"] for row in rows}
    pictures = list(_figures(results, [row for row in rows if row["case"] in drawn]))
    reading = [READING, *([_ONLY_FAILING] if many else [])]
    by_controller = ReportTable(spread.TITLE, spread.HEADERS, spread.table(spreads), spread.NOTE)
    kinds = spread.by_kind(rows)
    by_kind = ReportTable(
        spread.KINDS_TITLE, spread.KINDS_HEADERS, spread.kinds_table(kinds), spread.KINDS_NOTE
    )
    points = [
        *spread.kinds_sentences(kinds),
        *spread.sentences(spreads),
        *findings(rows),
        *spread.by_chance(rows),
    ]
    sections = [
        ReportSection("Findings", points=points, tables=[replace(overview, is_folded=many)]),
        ReportSection("By kind of path", tables=[by_kind] if kinds else []),
        ReportSection(
            "By controller",
            tables=[by_controller] if spreads else [],
            figures=_agreement(rows) if spreads else [],
        ),
        ReportSection("Rows that do not hold", tables=[_table("", failing)] if failing else []),
        ReportSection("Case by case", reading if pictures else (), figures=pictures),
        ReportSection("Rows", tables=[replace(_table("Every row", rows), is_folded=True)]),
    ]
    full = [section for section in sections if not section.is_empty]
    question = f"Does the simulator do what the TCP of Linux {kernels} does in the same network?"
    return with_provenance(results, "Validation against Linux", question, full)


def _figures(results: Results, rows: Sequence[Row]) -> Iterator[Figure]:
    """A picture of each case whose series was recorded."""
    path = results.path / SERIES
    kept = pl.DataFrame(schema={"case": pl.String})
    if path.is_file():
        parquet.unpacked_bytes(path)
        kept = pl.read_parquet(path)
    for case in results.cases:
        name = case["label"]
        theirs = kept.filter(case=name).drop("case")
        own = results.runs.filter(label=name, status="ok").sort("repeat")["run"].to_list()
        found = [row for row in rows if row["case"] == name]
        if not theirs.is_empty() and own and found:
            flows, headings = case["scenario"]["flow"], _flow_names(case["scenario"]["flow"])
            # All flows of a case have segments of one size.
            ours = _named(series(results, own[0], flows[0]["mss"]), headings, OURS)
            data = pl.concat([_named(theirs, headings, THEIRS), ours])
            yield overlay(f"overlay-{slug(name)}", name, _caption(found), data, own[:1])


def _agreement(rows: Sequence[Row]) -> list[Figure]:
    """All goodputs by controller, and all retransmissions."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row.get("controller") is None:
            continue
        own = found.setdefault(row["case"], dict.fromkeys(_PAIRS, None))
        own |= {"case": row["case"], "controller": row["controller"], "group": KINDS[row["kind"]]}
        if row["metric"] == spread.GOODPUT and row["ratio"] is not None:
            own["goodput_percent"] = 100 * (row["ratio"] - 1)
        if row["metric"] == spread.RETRANSMITS:
            own |= {"ours": row["ours"], "linux": row["reference"]}
    data = pl.DataFrame(list(found.values()), _PAIRS)
    tolerance = 100 * SAMPLED["deterministic"][spread.GOODPUT].share
    return [agreement("agreement", "All flows", _AGREEMENT, data, tolerance)]


def _caption(rows: Sequence[Row]) -> str:
    """The rows of a case in one sentence per flow."""
    headers, lines = table(rows)
    sentences = []
    for _, flow, *cells in lines:
        texts = [f"{name} {cell}" for name, cell in zip(headers[2:], cells, strict=True) if cell]
        sentences.append(f"Flow {flow}: {', '.join(texts)}.")
    return " ".join(sentences)


def _table(title: str, rows: Sequence[Row]) -> ReportTable:
    headers = ["case", "flow", "metric", "ours", "Linux", "ratio", "verdict", "tolerance", "note"]
    lines = [
        [
            Cell(row["case"], "name"),
            Cell("" if row["flow"] is None else str(row["flow"])),
            Cell(TITLES.get(row["metric"], ""), "text"),
            *(Cell(with_interval(row, value)) for value in ("ours", "reference", "ratio")),
            Cell(row["verdict"] or "", "text", tone="strong" if row["holds"] is False else ""),
            Cell(row["tolerance"] or "reported only", "text"),
            Cell(row["note"], "text"),
        ]
        for row in rows
    ]
    return ReportTable(title, headers, lines)


def _flow_names(flows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    names = [f"flow {index}, {flow['stack'].split('/')[-1]}" for index, flow in enumerate(flows)]
    schema = {"flow": pl.UInt32, "name": pl.String}
    return pl.DataFrame(list(enumerate(names)), schema, orient="row")


def _named(rows: pl.DataFrame, names: pl.DataFrame, source: str) -> pl.DataFrame:
    columns = ("t_s", "cwnd_segments", "srtt_ms", "goodput_mbps")
    named = rows.join(names, on="flow").sort("flow", "t_s")
    return named.select(pl.lit(source).alias("source"), pl.col("name").alias("flow"), *columns)
