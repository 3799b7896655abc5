"""Tables of published numbers, with the keys of a scenario that each was measured under.

A table is a CSV file. A column whose name has a dot is a key of the scenario, column `repeats` is
the number of runs behind a row, and any other column is a metric or an expression. An empty cell
has no number. A number is as exact as its digits: 0.54 stands for 0.535 to 0.545. With `0.54±0.1`
the source states its own error.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weir.base import bounded
from weir.base.errors import InputError
from weir.search.expressions import Expression
from weir.search.space import Keys

_REPEATS = "repeats"
_HELD_OUT = 4
"""One of this many cells judges what was found by the others."""


@dataclass(frozen=True)
class Cell:
    """One published number."""

    row: int
    column: int
    value: float
    error: float
    """Half of its last digit, or its stated error."""
    repeats: int
    is_held_out: bool = False


@dataclass(frozen=True)
class Table:
    """Published numbers: rows of keys, columns of expressions."""

    rows: Sequence[Keys]
    columns: Sequence[Expression]
    cells: Sequence[Cell]

    def name(self, cell: Cell) -> str:
        """The cell in words: those of its keys that differ between rows, and its column."""
        own = self.rows[cell.row]
        varied = [k for k in own if len({row.get(k) for row in self.rows}) > 1]
        words = [own[k] for k in varied]
        if len({one.column for one in self.cells}) > 1:
            words.append(self.columns[cell.column].text)
        return ", ".join(words) or self.columns[cell.column].text


def read(path: Path, seed: int) -> Table:
    """Reads a table; a quarter of its cells, drawn by `seed`, is held out.

    Raises:
        InputError: it is no such table.
    """
    lines = list(csv.reader(io.StringIO(bounded.read_text(path)), skipinitialspace=True))
    lines = [line for line in lines if line and not line[0].startswith("#")]
    if len(lines) < 2:
        raise InputError(f"{path}: a line of names and at least one row are needed")
    names = [name.strip() for name in lines[0]]
    metrics = [name for name in names if not _is_key(name) and name != _REPEATS]
    if not metrics:
        raise InputError(f"{path}: no column is a metric; there are: {', '.join(names)}")
    columns = [Expression.parse(name) for name in metrics]
    rows, cells = [], []
    for number, line in enumerate(lines[1:]):
        if len(line) != len(names):
            raise InputError(f"{path}: row {number + 1} has {len(line)} cells, not {len(names)}")
        own = dict(zip(names, (text.strip() for text in line), strict=True))
        rows.append({key: text for key, text in own.items() if _is_key(key) and text})
        repeats = own.get(_REPEATS) or "1"
        if not repeats.isdecimal() or int(repeats) < 1:
            raise InputError(f"{path}: {_REPEATS} {repeats}: a whole number from 1 on is needed")
        for column, name in enumerate(metrics):
            if own[name]:
                value, error = _number(path, name, own[name])
                cells.append(Cell(number, column, value, error, int(repeats)))
    if len(cells) < 2:
        raise InputError(f"{path}: at least two published numbers are needed")
    rng = random.Random(f"cells {seed}")  # noqa: S311
    chosen = set(rng.sample(range(len(cells)), len(cells) // _HELD_OUT))
    return Table(rows, columns, [replace(c, is_held_out=n in chosen) for n, c in enumerate(cells)])


def _is_key(name: str) -> bool:
    """Whether a column is a key of the scenario; `flows.timeouts` is an expression."""
    section, dot, _ = name.partition(".")
    return bool(dot) and "(" not in name and section not in ("flows", "links", "runs")


def _number(path: Path, name: str, text: str) -> tuple[float, float]:
    number, _, stated = text.replace("+-", "±").partition("±")
    try:
        return float(number), float(stated) if stated else _half_digit(number.strip())
    except ValueError:
        raise InputError(f"{path}: {name} {text}: not a number, as 0.54 or 0.54±0.1") from None


def _half_digit(text: str) -> float:
    """Half of the last digit that is printed."""
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - decimals)
