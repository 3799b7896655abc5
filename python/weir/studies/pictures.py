"""Sections of a report from their description: paragraphs, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from weir.base import bounded
from weir.cells.cells import Cells, frame, runs_of
from weir.cells.tables import claims_table, study_table, value_table
from weir.cells.texts import Entry, Scope, evaluated, expanded, filled
from weir.graphics.bars import BarAxes, bars
from weir.graphics.dots import DotAxes, dots
from weir.graphics.figure import Figure
from weir.graphics.heat import HeatAxes, heat_map
from weir.graphics.lines import LineAxes, lines
from weir.graphics.scatter import ScatterAxes, scatter
from weir.graphics.timeline import TimePanel, timeline
from weir.report.model import ReportSection, ReportTable
from weir.results import manifest
from weir.results.results import Results
from weir.statistics.intervals import Estimate

_TEXT = ("panel", "row", "column", "series", "group", "text")
"""Columns of figures that hold text; all others hold numbers."""


def sections(entries: Sequence[Entry], results: Results, scope: Scope) -> list[ReportSection]:
    """One section per iteration of each entry."""
    known = {**scope, "results": results, "runs_of": runs_of, "found": _finding(results)}
    return [_section(entry, own) for entry in entries for own in expanded(entry, known)]


def _finding(results: Results) -> Callable[[str], str]:
    """The finding that begins like this; nothing before findings are kept."""
    file = Path(results.path) / manifest.STUDY

    def found(start: str) -> str:
        kept = bounded.read_json(file)["findings"] if file.exists() else []
        return next((str(text) for text in kept if text.startswith(start)), "")

    return found


def _section(entry: Entry, scope: Scope) -> ReportSection:
    scope = {**scope, "series": []}
    tables = [t for part in entry.get("table", []) for t in _tables(part, scope)]
    figures = [f for part in entry.get("figure", []) for f in _figures(part, scope)]
    texts = [text for text in (filled(t, scope) for t in entry.get("text", [])) if text]
    return ReportSection(filled(entry["title"], scope), texts, tables=tables, figures=figures)


def _tables(entry: Entry, scope: Scope) -> Iterator[ReportTable]:
    for own in expanded(entry, scope):
        title, note, heading = (filled(entry.get(k, ""), own) for k in ("title", "note", "heading"))
        cells = own["cells"].table(filled(entry.get("table", ""), own))
        kind = entry.get("kind", "values")
        if kind == "claims":
            yield claims_table(own["cells"])
        elif kind == "published":
            yield study_table(title, cells.all)
        else:
            yield value_table(cells, note, heading or "test", title)


def _figures(entry: Entry, scope: Scope) -> Iterator[Figure]:
    for own in expanded(entry, scope):
        if "figures" in entry:
            yield from evaluated(entry["figures"], own)
            continue
        words = (filled(entry[part], own) for part in ("name", "title", "caption"))
        runs = runs_of(own["results"], *(filled(text, own) for text in entry.get("runs", [""])))
        yield from _KINDS[entry["kind"]](entry, own, *words, runs)


def _axes(entry: Entry, scope: Scope) -> dict[str, Any]:
    """The axes of a figure: texts are filled in, of those in `numbers` the value counts."""
    own = {
        name: filled(value, scope) if isinstance(value, str) else value
        for name, value in entry.get("axes", {}).items()
    }
    return own | {name: evaluated(text, scope) for name, text in entry.get("numbers", {}).items()}


Draw = Callable[..., Iterator[Figure]]


def _lines(
    entry: Entry, scope: Scope, name: str, title: str, caption: str, runs: Sequence[int]
) -> Iterator[Figure]:
    """Lines of the cells of one table per panel; nothing where there are none.

    `scope["series"]` has the series of the figures before in the section.
    """
    parts = [part for data in entry["data"] for part in _line_data(data, scope)]
    data = pl.concat(parts)
    if not data.is_empty():
        axes = LineAxes(**_axes(entry, scope), neighbours=tuple(scope["series"]))
        scope["series"].extend(data["series"].unique(maintain_order=True))
        yield lines(name, title, caption, data, axes, runs)


def _line_data(entry: Entry, scope: Scope) -> Iterator[pl.DataFrame]:
    """Points of a table: where its columns lie says `at`, which of its rows are shown `keep`."""
    for own in expanded(entry, scope):
        if "frame" in entry:
            yield evaluated(entry["frame"], own)
            continue
        cells = own["cells"].table(filled(entry["table"], own))
        keep = entry.get("keep", True)
        kept = Cells([c for c in cells.all if evaluated(keep, {**own, **c})])
        at = entry.get("at", "float(column)")
        places = [evaluated(at, {**own, "column": column}) for column in kept.columns()]
        yield frame(kept, filled(entry.get("panel", ""), own), places)


def _heat(
    entry: Entry, scope: Scope, name: str, title: str, caption: str, runs: Sequence[int]
) -> Iterator[Figure]:
    has_text = any("text" in part for part in entry["data"])
    names = ("panel", "row", "column", "value", *(["text"] if has_text else []))
    data = _rows(entry, scope, names)
    yield heat_map(name, title, caption, data, HeatAxes(**_axes(entry, scope)), runs)


def _bars(
    entry: Entry, scope: Scope, name: str, title: str, caption: str, runs: Sequence[int]
) -> Iterator[Figure]:
    names = ("panel", "group", "series", "value", "lo", "hi", "published")
    data = _rows(entry, scope, names).drop_nulls("value")
    yield bars(name, title, caption, data, BarAxes(**_axes(entry, scope)), runs)


def _dots(
    entry: Entry, scope: Scope, name: str, title: str, caption: str, runs: Sequence[int]
) -> Iterator[Figure]:
    data = _rows(entry, scope, ("panel", "row", "group", "value", "lo", "hi")).drop_nulls("value")
    yield dots(name, title, caption, data, DotAxes(**_axes(entry, scope)), runs)


def _scatter(
    entry: Entry, scope: Scope, name: str, title: str, caption: str, runs: Sequence[int]
) -> Iterator[Figure]:
    names = ("panel", "series", "x", "x_lo", "x_hi", "y", "y_lo", "y_hi")
    data = _rows(entry, scope, names).drop_nulls(["x", "y"])
    axes, levels = ScatterAxes(**_axes(entry, scope)), evaluated(entry["levels"], scope)
    yield scatter(name, title, caption, data, levels, axes, runs)


def _timeline(
    entry: Entry, scope: Scope, name: str, title: str, caption: str, runs: Sequence[int]
) -> Iterator[Figure]:
    panels = [
        TimePanel(
            filled(panel["title"], own),
            filled(panel["y"], own),
            evaluated(panel["data"], own),
            evaluated(panel.get("level"), own),
        )
        for panel in entry["panel"]
        for own in expanded(panel, scope)
    ]
    moments = evaluated(entry.get("moments", []), scope)
    yield timeline(name, title, caption, panels, moments, runs)


_KINDS: Mapping[str, Draw] = {
    "lines": _lines,
    "heat": _heat,
    "bars": _bars,
    "dots": _dots,
    "scatter": _scatter,
    "timeline": _timeline,
}


def _rows(entry: Entry, scope: Scope, names: Sequence[str]) -> pl.DataFrame:
    """A row per iteration of each part of `data`; an estimate stands for a value and its ends."""
    found = []
    for part in entry["data"]:
        for own in expanded(part, scope):
            row: dict[str, Any] = {}
            for name in names:
                if name in part:
                    is_text = name in _TEXT
                    row[name] = (filled if is_text else evaluated)(part[name], own)
            found.append(_spread(row))
    schema = {name: pl.String if name in _TEXT else pl.Float64 for name in names}
    return pl.DataFrame(found, schema)


def _spread(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose estimates are taken apart; an interval that is missing is a point in `x`, `y`."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if not isinstance(value, Estimate):
            found[name] = value
            continue
        is_point = name in ("x", "y")
        ends = {"lo": value.lo, "hi": value.hi}
        found[name] = value.mean
        for end, limit in ends.items():
            key = f"{name}_{end}" if is_point else end
            found[key] = value.mean if limit is None and is_point else limit
    return found
