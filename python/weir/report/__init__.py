"""Reports: results as one HTML file that opens anywhere, with its figures as files for papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weir.animation import Animation
from weir.comparison import RELEVANT
from weir.disk import write_text
from weir.errors import InputError
from weir.plots import Figure
from weir.plots.figure import wake_converter
from weir.report import scripts
from weir.report.compose import compose
from weir.report.html import render, render_animation
from weir.report.model import Cell, Provenance, Report, ReportSection, ReportTable, cautioned
from weir.report.radio_validation import compose_radio
from weir.report.study import FILE, compose_study, study_report
from weir.report.validation import compose_validation
from weir.results import load
from weir.validate import FILE as VALIDATION
from weir.validate.radio import FILE as RADIO

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
    """Starts what drawing a report needs and takes a second: best called while runs take place."""
    import scipy.special  # noqa: F401 - the statistics load it when they need it

    wake_converter()
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
    if (results.path / FILE).is_file():
        report = compose_study(results)
    elif (results.path / VALIDATION).is_file():
        report = compose_validation(results)
    elif (results.path / RADIO).is_file():
        report = compose_radio(results)
    else:
        report = compose(results, relevant)
    return write_report(cautioned(report, results.caution), results.path, formats)


def write_study(
    directory: str | Path,
    title: str,
    question: str,
    sections: Sequence[ReportSection],
    formats: Sequence[str] = (),
) -> Path:
    """Writes a report of one's own sections about a result directory, and where it came from."""
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
