"""Cells of studies that draw their own report: made from estimates, found again by their place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from weir.cells.protocol import PUBLISHED, Cell
from weir.results.results import Results
from weir.statistics.intervals import Estimate, mean_interval


def cell(
    table: str,
    row: str,
    column: str,
    unit: str,
    ours: Estimate,
    *,
    published: float | str | None = None,
    note: str = "",
    **more: Any,
) -> Cell:
    """One cell; `more` adds keys of its own, as the number of samples behind it."""
    place = {"table": table, "row": row, "column": column, "published": published, "unit": unit}
    return {**place, "ours": ours.as_json(), **more, "note": note}


@dataclass(frozen=True)
class Cells:
    """The cells of a study, as made or as read from disk."""

    all: Sequence[Cell]

    def table(self, name: str) -> Cells:
        """Those of one table."""
        return Cells([cell for cell in self.all if cell["table"] == name])

    def starting(self, prefix: str) -> Cells:
        """Those of the tables whose names begin like this."""
        return Cells([cell for cell in self.all if str(cell["table"]).startswith(prefix)])

    def names(self) -> list[str]:
        """The names of the tables, in order."""
        return list(dict.fromkeys(str(cell["table"]) for cell in self.all))

    def means(self) -> list[tuple[str, str, float | None]]:
        """Row, column and mean of each."""
        return [(str(c["row"]), str(c["column"]), c["ours"]["mean"]) for c in self.all]

    def rows(self) -> list[str]:
        """The names of their rows, in order."""
        return list(dict.fromkeys(str(cell["row"]) for cell in self.all))

    def columns(self) -> list[str]:
        """The names of their columns, in order."""
        return list(dict.fromkeys(str(cell["column"]) for cell in self.all))

    def at(self, row: str, column: str) -> Cell | None:
        """The cell at a place, if there is one."""
        found = (c for c in self.all if (c["row"], c["column"]) == (row, column))
        return next(found, None)

    def mean(self, row: str, column: str) -> float | None:
        """Its mean, if it has one."""
        return self.ours(row, column).mean

    def note(self, row: str, column: str) -> str:
        """What is said of the value there."""
        found = self.at(row, column)
        return "" if found is None else str(found["note"])

    def ours(self, row: str, column: str) -> Estimate:
        """Our value there, empty if there is none."""
        found = self.at(row, column)
        return Estimate(None, None, None, 0) if found is None else Estimate(**found["ours"])

    def text(self, row: str, column: str) -> str:
        """Its value for people: the mean, and the interval where there is one."""
        return interval_text(self.ours(row, column))


def goodput_interval(values: Iterable[float | None], capacity: float) -> Estimate:
    """A mean goodput, whose interval ends at the capacity of the link.

    In a short run the mean itself may be higher: a repair hands over what arrived before.
    """
    free = mean_interval(values, (0.0, None))
    if free.mean is None or free.hi is None:
        return free
    return replace(free, hi=min(free.hi, max(capacity, free.mean)))


def interval_text(ours: Estimate) -> str:
    """`4.96 (4.91 to 5.02)`: a mean and its 95 % interval, at three significant digits."""
    mean, low, high = ours.mean, ours.lo, ours.hi
    if mean is None:
        return "–"
    if low is None or high is None:
        return digits(mean)
    if says_nothing(mean, low, high):
        return f"{digits(mean)} ({TOO_FEW})"
    ends = digits(low), digits(high)
    return digits(mean) if ends[0] == ends[1] else f"{digits(mean)} ({ends[0]} to {ends[1]})"


def says_nothing(mean: float, low: float, high: float) -> bool:
    """Whether an interval is so wide that its ends are no information, as 0 to 4071590."""
    return high - low > _WIDEST * abs(mean)


def spread_text(mean: float, low: float | None, high: float | None, digits: int) -> str:
    """` ± 0.03`, or ` −4.4 +1.8` where the interval is lopsided; nothing without one."""
    if low is None or high is None:
        return ""
    if says_nothing(mean, low, high):
        return f" ({TOO_FEW})"
    below, above = mean - low, high - mean
    if abs(below - above) <= _LOPSIDED * max(below, above):
        return f" ± {above:.{digits}f}"
    return f" −{below:.{digits}f} +{above:.{digits}f}"


def digits(value: float) -> str:
    """Three significant digits, and no more than three after the point."""
    if value == 0:
        return "0"
    text = f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{value:.3f}".rstrip("0").rstrip(".") if "e" in text else text


def count_text(cell: Mapping[str, Any], source: str) -> str:
    """` (4/5)`, or ` (4)` of a published value: how many of several tries succeeded, if known.

    A cell has `complete` and `tried` for ours, `published_complete` for what is published.
    """
    if source == PUBLISHED:
        count = cell.get("published_complete")
        return "" if count is None else f" ({count})"
    return f" ({cell['complete']}/{cell['tried']})" if cell.get("tried") else ""


def decimals(value: float) -> int:
    """How many digits after the point show three significant ones, at most three.

    A value below 0.01 is shown with two significant ones, however many digits that takes.
    """
    size = math.floor(math.log10(abs(value))) if value else 0
    return min(max(2 - size, 0), 3) if size >= -2 else 1 - size


def frame(cells: Cells, panel: str, places: Iterable[float | str]) -> pl.DataFrame:
    """A table for `weir.graphics.lines`: rows are series, columns lie at `places`."""
    at = dict(zip(cells.columns(), places, strict=True))
    found = [
        (panel, row, at[column], ours.mean, ours.lo, ours.hi, ours.n)
        for row in cells.rows()
        for column in cells.columns()
        if (ours := cells.ours(row, column)).mean is not None
    ]
    kind = pl.String if any(isinstance(place, str) for place in at.values()) else pl.Float64
    schema = {
        "panel": pl.String,
        "series": pl.String,
        "at": kind,
        **dict.fromkeys(("value", "lo", "hi"), pl.Float64),
        "n": pl.Int64,
    }
    return pl.DataFrame(found, schema, orient="row")


def runs_of(results: Results, *prefixes: str) -> tuple[int, ...]:
    """The successful runs of the cases whose label begins with one of `prefixes`."""
    label = pl.col("label")
    is_wanted = pl.any_horizontal(label.str.starts_with(prefix) for prefix in prefixes)
    found = results.runs.filter((pl.col("status") == "ok") & is_wanted)
    return tuple(found["run"])


TOO_FEW = "too few repeats"
_WIDEST = 10.0
"""An interval that is wider than this many means is not shown."""
_LOPSIDED = 0.05
"""Sides of an interval that differ by a smaller share of the wider one are shown as one number."""
