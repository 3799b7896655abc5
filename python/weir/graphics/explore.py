"""Time series that a page draws itself: lines over one axis of time, with choices of what is shown.

A panel belongs to a point of the sweep, a line to a repeat. The page offers all points and repeats.
Values are 16-bit integers, scaled: a page holds a million of them in 3 MB.
"""

from __future__ import annotations

import base64
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Literal

import polars as pl

_MISSING = 0xFFFF
_LARGEST = _MISSING - 1
_INSTANTS = 0xFFFFFFFF
_MOST_VALUES = 400_000
"""Values in one figure, about 1 MB."""
_FEWEST_POINTS = 240
_MOST_POINTS = 100_000
"""Points of one line. Beyond, each slice of time keeps its smallest and its largest value."""
_REGULAR = 1e-6
"""Largest deviation of an instant from a regular grid, as a share of the interval."""

Shape = Literal["line", "mean", "step", "area", "ticks"]
"""How values are drawn. `mean` is a line that is averaged over what a pixel or two show, for rates.
`ticks` is a tick at each instant whose value is not zero.
"""


@dataclass(frozen=True, eq=False)
class Line:
    """Values over time. `repeat` is None if all choices of a repeat show it."""

    name: str
    colour: str
    t_s: pl.Series
    value: pl.Series
    shape: Shape = "line"
    width: float = 1.4
    dash: Sequence[int] = ()
    alpha: float = 1.0
    repeat: int | None = None


@dataclass(frozen=True, eq=False)
class Band:
    """A range over time, as of all repeats. Only the typical repeat is drawn over it."""

    colour: str
    t_s: pl.Series
    low: pl.Series
    high: pl.Series


@dataclass(frozen=True, eq=False)
class ExplorerPanel:
    """One diagram. `typical` is the repeat that it shows first."""

    title: str
    y: str
    lines: Sequence[Line]
    point: Mapping[str, str] = field(default_factory=dict)
    typical: int | None = None
    bands: Sequence[Band] = ()
    levels: Sequence[tuple[float, str]] = ()
    """Horizontal lines with their names."""
    moments: Sequence[tuple[float, str]] = ()
    """Vertical lines with their names."""
    y_range: tuple[float, float] | None = None
    """What the vertical axis shows, if not everything from zero on."""


@dataclass(frozen=True, eq=False)
class Explorer:
    """The panels of a figure. Figures of one `group` share their axis of time and their choices."""

    panels: Sequence[ExplorerPanel]
    end_s: float
    group: str
    is_y_shared: bool = True
    """Whether all panels show the same values, of one unit."""
    shown: Mapping[str, str] | None = None
    """The point of the sweep that is shown first; None: all of them."""
    seeds: Mapping[int, int] = field(default_factory=dict)
    """The seed of each repeat."""

    @property
    def data(self) -> dict[str, Any]:
        """What the page reads."""
        kept, note = self._within_budget()
        return {
            "end": self.end_s,
            "group": self.group,
            "shared": self.is_y_shared,
            "shown": None if self.shown is None else dict(self.shown),
            "seeds": {str(repeat): seed for repeat, seed in self.seeds.items()},
            "note": note,
            "panels": kept,
        }

    def _within_budget(self) -> tuple[list[dict[str, Any]], str]:
        """The panels with as many repeats and points per line as a page can hold."""
        panels, notes = self.panels, []
        repeats = sorted({r for p in panels for line in p.lines if (r := line.repeat) is not None})
        count = sum(len(panel.lines) for panel in panels)
        while count * _FEWEST_POINTS > _MOST_VALUES and len(repeats) > 1:
            repeats = repeats[: len(repeats) // 2]
            panels = [_of_repeats(panel, repeats) for panel in panels]
            count = sum(len(panel.lines) for panel in panels)
            notes = [f"Only repeats 1 to {repeats[-1] + 1} and the typical ones can be chosen."]
        most = max(_FEWEST_POINTS, min(_MOST_POINTS, _MOST_VALUES // max(count, 1)))
        if any(len(line.value) > most for panel in panels for line in panel.lines):
            notes.append(
                f"Lines have at most {most:,} points: of each slice of time, its smallest and its "
                "largest value."
            )
        return [_panel(panel, most) for panel in panels], " ".join(notes)


def _of_repeats(panel: ExplorerPanel, repeats: Sequence[int]) -> ExplorerPanel:
    kept = {*repeats, panel.typical, None}
    return replace(panel, lines=[line for line in panel.lines if line.repeat in kept])


def _panel(panel: ExplorerPanel, most: int) -> dict[str, Any]:
    return {
        "title": panel.title,
        "y": panel.y,
        "point": dict(panel.point),
        "typical": panel.typical,
        "range": panel.y_range,
        "lines": [_line(line, most) for line in panel.lines],
        "bands": [
            {
                "colour": band.colour,
                "t": times(band.t_s),
                "low": scaled(band.low),
                "high": scaled(band.high),
            }
            for band in panel.bands
        ],
        "levels": panel.levels,
        "moments": panel.moments,
    }


def _line(line: Line, most: int) -> dict[str, Any]:
    thin = averaged if line.shape == "mean" else thinned
    t, value = thin(line.t_s, line.value, most)
    return {
        "name": line.name,
        "colour": line.colour,
        "shape": line.shape,
        "width": line.width,
        "dash": list(line.dash),
        "alpha": line.alpha,
        "repeat": line.repeat,
        "t": times(t),
        "v": scaled(value),
    }


def thinned(t: pl.Series, value: pl.Series, most: int) -> tuple[pl.Series, pl.Series]:
    """At most `most` points: each slice keeps the smallest and the largest value, in their order.

    Missing values are left out of a line that is thinned.
    """
    if len(value) <= most:
        return t, value
    present = _present(t, value)
    width = -(-present.height // max(most // 2, 1))
    slices = present.with_row_index("n").group_by(pl.col("n") // width)
    ends = slices.agg(
        pl.col("n").get(pl.col("value").arg_min()).alias("lowest"),
        pl.col("n").get(pl.col("value").arg_max()).alias("highest"),
    )
    kept = present[pl.concat([ends["lowest"], ends["highest"]]).unique().sort()]
    return kept["t_s"], kept["value"]


def averaged(t: pl.Series, value: pl.Series, most: int) -> tuple[pl.Series, pl.Series]:
    """At most `most` points: each is the mean of a slice, in its middle."""
    if len(value) <= most:
        return t, value
    present = _present(t, value)
    width = -(-present.height // most)
    slices = present.with_row_index("n").group_by(pl.col("n") // width, maintain_order=True)
    means = slices.agg(pl.col("t_s").mean(), pl.col("value").mean())
    return means["t_s"], means["value"]


def times(t_s: pl.Series) -> dict[str, Any]:
    """Instants: the first, the interval and the number, or unsigned 32-bit integers, scaled."""
    t: list[float] = t_s.to_list()
    if len(t) < 2:
        return {"first": t[0] if t else 0.0, "step": 0.0, "n": len(t)}
    first, last = t[0], t[-1]
    step = (last - first) / (len(t) - 1)
    if all(abs(at - first - n * step) <= _REGULAR * step for n, at in enumerate(t)):
        return {"first": first, "step": step, "n": len(t)}
    unit = (last - first) / _INSTANTS or 1.0
    return {
        "first": first,
        "unit": unit,
        "data": _text("I", [round((at - first) / unit) for at in t]),
    }


def scaled(column: pl.Series) -> dict[str, Any]:
    """Values as unsigned 16-bit integers times `unit` above `low`; the largest one is missing.

    Whole numbers stay exact if their range allows.
    """
    values: list[float | None] = column.to_list()
    present = [v for v in values if v is not None and isfinite(v)]
    low, high = (float(min(present)), float(max(present))) if present else (0.0, 0.0)
    is_whole = high - low <= _LARGEST and all(v == int(v) for v in present)
    unit = 1.0 if is_whole or high == low else (high - low) / _LARGEST
    if len(present) < len(values):
        known = [
            _MISSING if v is None or not isfinite(v) else round((v - low) / unit) for v in values
        ]
    else:
        known = [round((v - low) / unit) for v in present]
    return {"low": low, "unit": unit, "data": _text("H", known)}


def _present(t: pl.Series, value: pl.Series) -> pl.DataFrame:
    rows = pl.DataFrame({"t_s": t, "value": value.cast(pl.Float64)})
    return rows.filter(pl.col("value").is_finite())


def _text(kind: Literal["H", "I"], numbers: list[int]) -> str:
    """Little-endian integers in base64. They need no NumPy, whose import takes 0.1 s."""
    whole = array(kind, numbers)
    if sys.byteorder == "big":
        whole.byteswap()
    return base64.b64encode(whole).decode()
