"""What a report consists of, whatever it is about: sections of prose, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from weir.base import grid
from weir.plots import Figure

Kind = Literal["name", "number", "text"]
Tone = Literal["", "strong", "faint", "good", "fair", "bad", "open"]
"""How a cell looks. The last four are of verdicts; the word next to the colour says which."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table. `link` is the anchor of what the number was made from."""

    text: str
    kind: Kind = "number"
    link: str = ""
    note: str = ""
    """Shown when pointed at, and for those who cannot point printed below the table."""
    anchor: str = ""
    """What a link to this cell's row names."""
    tone: Tone = ""


@dataclass(frozen=True)
class ReportTable:
    """A table with one line of headers; plain strings are cells of names or text."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    note: str = ""
    anchor: str = ""
    is_folded: bool = False
    """Whether it is shown only on request, as long lists are."""

    @property
    def cells(self) -> list[list[Cell]]:
        """Every row with each entry as a cell."""
        return [
            [entry if isinstance(entry, Cell) else Cell(entry, "text") for entry in row]
            for row in self.rows
        ]

    @property
    def notes(self) -> list[str]:
        """The notes of its cells, each once, in order."""
        return list(dict.fromkeys(cell.note for row in self.cells for cell in row if cell.note))


@dataclass(frozen=True)
class ReportSection:
    """A heading with what stands under it, in this order."""

    title: str
    paragraphs: Sequence[str] = ()
    points: Sequence[str] = ()
    are_points_folded: bool = False
    """Whether the points are shown only on request, as long lists are."""
    warnings: Sequence[str] = ()
    tables: Sequence[ReportTable] = ()
    figures: Sequence[Figure] = ()
    code: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing under the heading."""
        parts = (self.paragraphs, self.points, self.warnings, self.tables, self.figures, self.code)
        return not any(parts)


@dataclass(frozen=True)
class Provenance:
    """What was run: enough to run it again."""

    command: str
    version: str
    created: str
    seeds: Mapping[int, int] = field(default_factory=dict)
    """The seed of each run id."""

    def of(self, runs: Sequence[int]) -> str:
        """The seeds and run ids behind a figure, in words."""
        seeds = sorted({self.seeds[run] for run in runs if run in self.seeds})
        if not seeds:
            return ""
        return f"seeds {ranges(seeds)}; runs {ranges(sorted(set(runs)))}"


@dataclass(frozen=True)
class Report:
    """A whole report."""

    title: str
    question: str
    sections: Sequence[ReportSection]
    provenance: Provenance
    alerts: Sequence[str] = ()
    """What a reader must know before any number, in a box at the top."""


def cautioned(report: Report, caution: str) -> Report:
    """The same report; each of its tables and figures says what to bear in mind with it."""
    if not caution:
        return report
    sections = [
        replace(
            section,
            tables=[replace(t, title=grid.cautioned(t.title, caution)) for t in section.tables],
            figures=[
                figure if figure.caution == caution else replace(figure, caution=caution)
                for figure in section.figures
            ],
        )
        for section in report.sections
    ]
    return replace(report, sections=sections)


def ranges(numbers: Sequence[int]) -> str:
    """Ascending whole numbers, runs of them shortened: `1-10, 12`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}\N{EN DASH}{p[-1]}" for p in parts)
