"""Values over time with as much detail as a screen can show.

A screen has some thousand pixels in a row, and a table may have millions of rows. Where it has more
rows than pixels, each bin of time becomes its smallest value, its largest and its mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ROWS_PER_BIN = 2
"""Up to this many rows per bin the rows themselves are shown."""


@dataclass(frozen=True, eq=False)
class Series:
    """Columns of one flow or link, by ascending time; what is unknown is NaN."""

    t_s: Floats
    columns: Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class Detail:
    """What a screen shows of a series in a range of time."""

    t_s: Floats
    mean: Mapping[str, Floats]
    low: Mapping[str, Floats] | None
    """The smallest value of each bin; None where the rows themselves are shown."""
    high: Mapping[str, Floats] | None
    """The largest value of each bin."""


def detail(series: Series, start: float, end: float, bins: int) -> Detail:
    """The series from `start` to `end`, in at most `bins` bins or twice as many rows.

    Where rows are shown, the nearest one on each side is added to them, so that lines reach the
    edges of the range.
    """
    first = int(np.searchsorted(series.t_s, start, side="left"))
    last = int(np.searchsorted(series.t_s, end, side="right"))
    if last - first <= ROWS_PER_BIN * bins or end <= start:
        rows = slice(max(0, first - 1), min(len(series.t_s), last + 1))
        raw = {name: values[rows] for name, values in series.columns.items()}
        return Detail(series.t_s[rows], raw, None, None)
    rows = slice(first, last)
    width = (end - start) / bins
    numbers = ((series.t_s[rows] - start) / width).astype(np.int64)
    # The end of the range is in its last bin.
    return _binned(series, rows, np.minimum(numbers, bins - 1), start, width)


def _binned(
    series: Series, rows: slice, numbers: npt.NDArray[np.int64], start: float, width: float
) -> Detail:
    """Some rows, each in the bin of this number; a bin without rows is left out."""
    begins = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    mean, low, high = {}, {}, {}
    for name, whole in series.columns.items():
        values = whole[rows]
        low[name] = np.fmin.reduceat(values, begins)
        high[name] = np.fmax.reduceat(values, begins)
        present = np.add.reduceat(~np.isnan(values), begins, dtype=np.float64)
        sums = np.add.reduceat(np.nan_to_num(values, nan=0.0), begins)
        mean[name] = np.divide(sums, present, out=np.full_like(sums, np.nan), where=present > 0)
    middle = (numbers[begins] + 0.5) * width + start
    return Detail(middle.astype(np.float64), mean, low, high)
