"""Figures that stand in more than one place: each has one source, from which the others follow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
VALIDATION = "docs/validation/README.md"


@dataclass(frozen=True)
class Figure:
    """A number of rows: where a page has it, and the places that repeat it after some words."""

    page: str
    pattern: str
    places: tuple[tuple[str, str], ...]

    def value(self) -> str:
        """The figure as `3 of 4`. In a row of a table the total stands first."""
        (found,) = re.findall(self.pattern, _text(self.page), re.MULTILINE | re.DOTALL)
        return found if isinstance(found, str) else f"{found[1]} of {found[0]}"

    def wrong(self) -> list[str]:
        """The places that show another value, or none."""
        shown = (
            (page, re.findall(rf"{re.escape(before)}(\d+ of \d+) rows", _text(page)))
            for page, before in self.places
        )
        return [f"{page}: {found}" for page, found in shown if found != [self.value()]]

    def write(self) -> None:
        """Writes the value into each place."""
        for page, before in self.places:
            shown = rf"{re.escape(before)}\d+ of \d+ rows"
            text = re.sub(shown, f"{before}{self.value()} rows", _text(page))
            (ROOT / page).write_text(text, encoding="utf-8")


_HOLD = r"^- (\d+ of \d+) judged rows hold\.$"
FIGURES = {
    "recorded runs": Figure(
        VALIDATION,
        rf"<!-- results: .*?{_HOLD}",
        (
            ("README.md", "agrees with Linux 6.1: "),
            ("docs/README.md", "agrees with Linux 6.1: "),
            (VALIDATION, "| recorded runs of Linux 6.1 | "),
        ),
    ),
    "radio": Figure(
        "docs/validation/radio.md",
        _HOLD,
        ((VALIDATION, "| theory and published measurements of 802.11 | "),),
    ),
    "virtual time": Figure(
        VALIDATION,
        r"^### Results, virtual time$.*?^\| together \| (\d+) \| (\d+) \|",
        ((VALIDATION, "| a Linux guest in virtual time | "),),
    ),
    "real time": Figure(
        VALIDATION,
        r"^### Results, real time$.*?^\| together \| (\d+) \| (\d+) \|",
        ((VALIDATION, "| this machine's kernel in real time | "),),
    ),
}
"""The headlines of the validation."""


def write() -> None:
    """Writes all figures into all of their places."""
    for figure in FIGURES.values():
        figure.write()


def _text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")
