"""Changes since an earlier result: with a baseline only these matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weir.base.errors import InputError
from weir.conform import outcome
from weir.conform.outcome import Row, is_good
from weir.results import manifest


@dataclass(frozen=True)
class Change:
    """A row whose outcome is not that of the baseline."""

    row: Row
    before: str
    """The outcome in the baseline; empty if the row is new."""

    @property
    def is_regression(self) -> bool:
        """Whether a row that was as expected, or is new, is not as expected."""
        return not is_good(self.row)

    @property
    def text(self) -> str:
        """In words."""
        row = self.row
        before = self.before or "not in the baseline"
        place = f"{row['suite']} {row['case']}, {row['stack']}, {row['check']}"
        return f"{place}: {before} → {row['outcome']}"


def load(directory: Path) -> list[Row]:
    """The rows of an earlier result.

    Raises:
        InputError: there are none in the directory.
    """
    if not (directory / manifest.CONFORM).is_file():
        raise InputError(
            f"--baseline {directory}: no results of weir conform here (they have a "
            f"{manifest.CONFORM})"
        )
    return outcome.read(directory)


def changes(rows: Sequence[Row], before: Sequence[Row]) -> list[Change]:
    """The rows with another outcome than before, and new ones that are not as expected."""
    return list(_changes(rows, {_place(row): row["outcome"] for row in before}))


def _changes(rows: Sequence[Row], before: Mapping[tuple[str, ...], str]) -> Iterator[Change]:
    for row in rows:
        old = before.get(_place(row), "")
        if old != row["outcome"] and (old or not is_good(row)):
            yield Change(row, old)


def _place(row: Row) -> tuple[str, ...]:
    return tuple(str(row[key]) for key in ("suite", "case", "check", "stack", "world"))
