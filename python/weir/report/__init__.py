"""Reports: results as one HTML file that opens anywhere, with its figures as files for papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weir.base.disk import write_text
from weir.base.errors import InputError
from weir.graphics.figure import converter
from weir.graphics.paper import Paper
from weir.plots import Figure
from weir.report import scripts
from weir.report.animation import Animation
from weir.report.html import render, render_animation
from weir.report.model import Cell, Provenance, Report, ReportSection, ReportTable

__all__ = [
    "Cell",
    "Figure",
    "Files",
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
    scripts.packed_vega()


def write_animation(animation: Animation, path: Path) -> Path:
    """Writes the page that plays an animation.

    Raises:
        StoreError: the disk refuses.
    """
    write_text(path, render_animation(animation))
    return path


@dataclass(frozen=True, slots=True)
class Files:
    """Figures as files."""

    formats: Sequence[str] = ()
    """Of `png`, `svg` and `pdf`."""
    paper: Paper | None = None
    """Their size."""
    names: Sequence[str] = ()
    """Which of them; without a name all."""

    def of(self, report: Report) -> list[Figure]:
        """The figures of a report that become files.

        Raises:
            InputError: there is no figure of a name.
        """
        figures = {figure.name: figure for section in report.sections for figure in section.figures}
        for name in self.names:
            if name not in figures:
                raise InputError(f"--figure {name}: there are {', '.join(figures) or 'no figures'}")
        return [
            replace(figure, paper=self.paper)
            for name, figure in figures.items()
            if not self.names or name in self.names
        ]


def write_report(report: Report, directory: Path, files: Files | None = None) -> Path:
    """Writes any report, and figures of it as files, into an existing directory.

    Raises:
        InputError: what draws figures in files is not installed, or one cannot be drawn so.
    """
    files = files or Files()
    wanted = files.of(report) if files.formats else []
    if files.formats:
        converter()
    path = directory / "report.html"
    write_text(path, render(report))
    if files.formats:
        folder = directory / "figures"
        if folder.is_symlink():
            raise InputError(f"{folder}: a link to another folder; figures are not written there")
        folder.mkdir(exist_ok=True)
        for figure in wanted:
            figure.save(folder, files.formats)
    return path
