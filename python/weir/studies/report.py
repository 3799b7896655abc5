"""The report of a study: what was published, what we found, and why they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weir.base import bounded
from weir.cells.protocol import DrawnStudy, JudgingStudy
from weir.cells.protocol import sources as value_sources
from weir.cells.tables import table_sections, verdict_table
from weir.report import Files, summary, write_report
from weir.report.compose import with_provenance
from weir.report.model import Report, ReportSection, cautioned
from weir.results import manifest
from weir.results.results import Results
from weir.studies.catalogue import studies
from weir.studies.sources import claim_reasons
from weir.studies.sources import load as printed_sources

_MAIN = 7
"""Number of findings at the top; a study orders them by importance."""
_MOST_SHOWN = 20
"""Further ones up to this number are shown unasked."""

Cells = Sequence[Mapping[str, Any]]


def compose_study(results: Results) -> Report:
    """The report of the study whose cells are kept next to its results."""
    kept = bounded.read_json(Path(results.path) / manifest.STUDY)
    main, rest = kept["findings"][:_MAIN], kept["findings"][_MAIN:]
    cautions = _cautions(results, kept["rows"])
    verdicts = _verdicts(kept["study"], kept["rows"], cautions)
    findings = ReportSection("Findings", points=main, warnings=[] if verdicts else cautions)
    own = _own_sections(results, kept["study"], kept["rows"])
    sections = [
        *([*verdicts, *own, findings] if verdicts else [findings, *own]),
        ReportSection(
            "Further findings, sources and assumptions",
            points=rest,
            are_points_folded=len(rest) > _MOST_SHOWN,
        ),
    ]
    full = [section for section in sections if not section.is_empty]
    return with_provenance(results, f"Study {kept['study']}", _description(kept["study"]), full)


def _verdicts(name: str, cells: Cells, cautions: Sequence[str]) -> list[ReportSection]:
    """What becomes of the main claims, and whose they are; nothing where a study tests none."""
    study = studies().get(name)
    first = study.verdicts if isinstance(study, JudgingStudy) else ()
    known = [own for own in printed_sources() if own.study == name]
    table = verdict_table(cells, first, claim_reasons(known, cells))
    if not table.rows:
        return []
    titles = [f"Source {own.id}: {own.title}. {own.about}" for own in known]
    return [ReportSection("Verdicts", titles, warnings=cautions, tables=[table])]


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


def write_study(
    results: Results,
    title: str,
    question: str,
    sections: Sequence[ReportSection],
    formats: Sequence[str] = (),
) -> Path:
    """Writes a report of one's own sections about results, and where these came from."""
    report = with_provenance(results, title, question, sections)
    return write_report(cautioned(report, results.caution), results.path, Files(formats))
