"""Reports: results as one HTML file that opens anywhere, with its figures as files for papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weir.base.disk import write_text
from weir.base.errors import InputError
from weir.graphics.figure import converter
from weir.plots import Figure
from weir.report import scripts
from weir.report.animation import Animation
from weir.report.html import render, render_animation
from weir.report.model import Cell, Provenance, Report, ReportSection, ReportTable

__all__ = [
    "Cell",
    "Figure",
    "Provenance",
    "Report",
    "ReportSection",
    "ReportTable",
    "wake",
    "write_animation",
    "write_report",
]


def preload() -> None:
    """Reads what drawing a report needs: best called while runs take place."""
    scripts.vega()


def write_animation(animation: Animation, path: Path) -> Path:
    """Writes the page that plays an animation.

    Raises:
        StoreError: the disk refuses.
    """
    write_text(path, render_animation(animation))
    return path


def write_report(report: Report, directory: Path, formats: Sequence[str] = ()) -> Path:
    """Writes any report, and its figures in `formats`, into an existing directory.

    Raises:
        InputError: what draws figures in files is not installed.
    """
    if formats:
        converter()
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
