"""Reports: results as one HTML file that opens anywhere, with its figures as files for papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weir.base.disk import write_text
from weir.base.errors import InputError
from weir.comparison.contrasts import RELEVANT
from weir.graphics.figure import unchecked
from weir.plots import Figure
from weir.report import scripts
from weir.report.animation import Animation
from weir.report.compose import compose
from weir.report.html import render, render_animation
from weir.report.model import Cell, Provenance, Report, ReportSection, ReportTable, cautioned
from weir.results import manifest
from weir.results.results import Results, load

__all__ = [
    "Cell",
    "Figure",
    "Provenance",
    "Report",
    "ReportSection",
    "ReportTable",
    "wake",
    "write",
    "write_animation",
    "write_report",
    "write_study",
]


def wake() -> None:
    """Reads what drawing a report needs: best called while runs take place."""
    scripts.vega()


def write(
    directory: str | Path, formats: Sequence[str] = (), *, relevant: float = RELEVANT
) -> Path:
    """Draws the report of a result directory into it; returns the path of `report.html`.

    Differences of stacks are of practical interest from `relevant` times the first one's mean on.
    `formats` may name `png`, `svg` and `pdf`: each figure is then also written to `figures/`.

    Raises:
        WeirError: there are no results, or the disk refuses.
    """
    results = load(directory)
    with unchecked():
        report = _composed(results, relevant)
        return write_report(cautioned(report, results.caution), results.path, formats)


def _composed(results: Results, relevant: float) -> Report:
    """The report of what is kept next to the tables; that of a comparison imports no other."""
    if (results.path / manifest.STUDY).is_file():
        from weir.studies.report import compose_study

        return compose_study(results)
    if (results.path / manifest.VALIDATION).is_file():
        from weir.validation.report import compose_validation

        return compose_validation(results)
    if (results.path / manifest.RADIO).is_file():
        from weir.radio_validation.report import compose_radio

        return compose_radio(results)
    if (results.path / manifest.CONFORM).is_file():
        from weir.conform.report import compose_conform

        return compose_conform(results)
    return compose(results, relevant)


def write_study(
    directory: str | Path,
    title: str,
    question: str,
    sections: Sequence[ReportSection],
    formats: Sequence[str] = (),
) -> Path:
    """Writes a report of one's own sections about a result directory, and where it came from."""
    from weir.studies.report import study_report

    results = load(directory)
    report = study_report(results, title, question, sections)
    return write_report(cautioned(report, results.caution), results.path, formats)


def write_animation(animation: Animation, path: Path) -> Path:
    """Writes the page that plays an animation.

    Raises:
        StoreError: the disk refuses.
    """
    write_text(path, render_animation(animation))
    return path


def write_report(report: Report, directory: Path, formats: Sequence[str] = ()) -> Path:
    """Writes any report, and its figures in `formats`, into an existing directory."""
    path = directory / "report.html"
    write_text(path, render(report))
    if formats:
        folder = directory / "figures"
        if folder.is_symlink():
            raise InputError(f"{folder}: a link to another folder; figures are not written there")
        folder.mkdir(exist_ok=True)
        for section in report.sections:
            for figure in section.figures:
                figure.save(folder, formats)
    return path
