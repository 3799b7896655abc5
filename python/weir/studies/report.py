"""The report of a study: what was published, what we found, and why they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from weir.base import bounded
from weir.report import summary
from weir.report.compose import provenance, provenance_section
from weir.report.html import slug
from weir.report.model import Cell, Report, ReportSection, ReportTable
from weir.results import manifest
from weir.results.results import Results
from weir.studies import DrawnStudy, studies
from weir.studies import plot as figures
from weir.studies import sources as value_sources
from weir.studies.cells import count_text, decimals, spread_text

FILE = manifest.STUDY

_MAIN = 7
"""Number of findings at the top; a study orders them by importance."""
_MOST_SHOWN = 20
"""Further ones up to this number are shown unasked."""

Cells = Sequence[Mapping[str, Any]]


def compose_study(results: Results) -> Report:
    """The report of the study whose cells are kept next to its results."""
    kept = bounded.read_json(Path(results.path) / FILE)
    main, rest = kept["findings"][:_MAIN], kept["findings"][_MAIN:]
    sections = [
        ReportSection("Findings", points=main, warnings=_cautions(results, kept["rows"])),
        *_own_sections(results, kept["study"], kept["rows"]),
        ReportSection(
            "Further findings, sources and assumptions",
            points=rest,
            are_points_folded=len(rest) > _MOST_SHOWN,
        ),
    ]
    full = [section for section in sections if not section.is_empty]
    return study_report(results, f"Study {kept['study']}", _description(kept["study"]), full)


def _cautions(results: Results, cells: Cells) -> list[str]:
    """What a reader must know; with one seed a study may have intervals over something else."""
    estimates = (cell[source] for cell in cells for source in value_sources(cells[:1]))
    has_intervals = any(isinstance(one, Mapping) and one.get("lo") is not None for one in estimates)
    return summary.cautions(results, has_intervals=has_intervals)


def _own_sections(results: Results, name: str, cells: Cells) -> Sequence[ReportSection]:
    """What the study draws itself, or else each of its tables."""
    study = studies().get(name)
    if isinstance(study, DrawnStudy):
        return study.sections(results, [dict(cell) for cell in cells])
    return list(table_sections(cells, tuple(results.runs.filter(status="ok")["run"])))


def _description(name: str) -> str:
    known = studies()
    text = known[name].description if name in known else ""
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def study_report(
    results: Results, title: str, question: str, sections: Sequence[ReportSection]
) -> Report:
    """A report of given sections, with the provenance of all runs added."""
    return Report(title, question, [*sections, provenance_section(results)], provenance(results))


def table_sections(cells: Cells, runs: tuple[int, ...]) -> Iterator[ReportSection]:
    """One section per published table: the table with ours below each row, and its picture.

    A study is one plan, so `runs`, all of it, is what each picture was made from.
    """
    for name in dict.fromkeys(cell["table"] for cell in cells):
        own = [cell for cell in cells if cell["table"] == name]
        figure = replace(figures.comparison(slug(name), own), runs=runs)
        drawn = [] if figure.data.is_empty() else [figure]
        yield ReportSection(str(name), tables=[study_table(str(name), own)], figures=drawn)


def study_table(name: str, cells: Cells, interval: str = "over the seeds") -> ReportTable:
    """A published table; under each of its rows our values. `interval` says what theirs is of."""
    columns = list(dict.fromkeys(str(cell["column"]) for cell in cells))
    sources = value_sources(cells)
    rows: list[list[Cell | str]] = []
    for row in dict.fromkeys(str(cell["row"]) for cell in cells):
        by_column = {str(cell["column"]): cell for cell in cells if str(cell["row"]) == row}
        for source in sources:
            values = (_value(by_column.get(column, {}), source) for column in columns)
            heading = Cell(row, "name") if source == sources[0] else Cell("", "text")
            rows.append([heading, figures.heading(source), *values])
    units = {str(cell.get("unit", "")) for cell in cells}
    unit = units.pop() if len(units) == 1 else ""
    title = f"{name}, in {unit}" if unit else name
    note = (
        f"Mean ± half of the 95 % interval {interval}; where it is lopsided, how far it reaches "
        "below and above."
    )
    return ReportTable(title, ["row", "source", *columns], rows, note=note)


def _value(cell: Mapping[str, Any], source: str) -> Cell:
    value, count = cell.get(source), count_text(cell, source)
    if not isinstance(value, Mapping):
        text = "–" if value is None else f"{value}{count}"
        return Cell(text, note=str(cell.get("note") or ""), tone="strong")
    mean = value.get("mean")
    if mean is None:
        return Cell(f"–{count}")
    digits = decimals(mean)
    spread = spread_text(mean, value.get("lo"), value.get("hi"), digits)
    return Cell(f"{mean:.{digits}f}{spread}{count}")
