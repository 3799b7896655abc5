"""A table of text, for a terminal and for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rich.box import SIMPLE_HEAD
from rich.console import Group, JustifyMethod, RenderableType
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from weir.base.plain import plain, plain_lines

_PROSE = 100
"""Columns of a note at most, however wide the table is."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of text, whose columns are names first, then numbers, then notes."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1
    notes: int = 0
    note: str = ""

    def rich(self) -> RenderableType:
        """For a terminal."""
        table = Table(box=SIMPLE_HEAD)
        numbers = range(self.names, len(self.headers) - self.notes)
        for position, header in enumerate(self.headers):
            justify: JustifyMethod = "right" if position in numbers else "left"
            table.add_column(Text(plain(header)), justify=justify, overflow="fold")
        for row in self.rows:
            table.add_row(*(Text(plain_lines(cell)) for cell in row))
        # A title of the table's own would be wrapped at the width of the table.
        title = Text(plain(self.title), style="bold")
        note = Text(plain_lines(self.note), style="dim")
        return Group(title, table, *([Constrain(note, _PROSE)] if self.note else []))

    def html(self) -> str:
        """For a notebook."""
        head = "".join(f"<th>{escape(header)}</th>" for header in self.headers)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        return (
            f"<table><caption>{escape(self.title)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table><p>{escape(self.note)}</p>"
        )


def number(value: float | None, digits: int = 3) -> str:
    """A number of this many digits, or all before the point, without an exponent; – for None.

    >>> [number(value) for value in (0.01234, 99.97, 999.7, 2345.6, None)]
    ['0.0123', '100', '1000', '2346', '–']
    """
    if value is None:
        return "–"
    return f"{value:.{digits}g}" if abs(value) < 10 ** (digits - 1) else f"{value:.0f}"


def cautioned(title: str, caution: str) -> str:
    """A title that says what to bear in mind with what stands below it."""
    return f"{title} [{caution}]" if caution else title


def counted(number: int, what: str) -> str:
    """`1 run`, `3 runs`; `what` may have words before its noun.

    >>> counted(1, "more connection"), counted(0, "run")
    ('1 more connection', '0 runs')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
