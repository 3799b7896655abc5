"""Heat maps with the numbers in their cells, for a quantity over two lists of names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from weir.graphics import names, theme
from weir.graphics.chart import Chart, Compound, Shown, Spec, channel, in_columns, inline, layered
from weir.graphics.figure import Figure

_CELL_HEIGHT = 34
_NARROWEST_CELL, _WIDEST_CELL = 58, 92
_LABELS = 110
_STRAIGHT = 12
"""Letters of a name that fits above a cell."""
_GAP = 26
_BLACK, _WHITE = "#000000", "#ffffff"
"""One of them has a contrast of at least 4.5 with any colour (WCAG 2.2, 1.4.3)."""


@dataclass(frozen=True, slots=True)
class HeatAxes:
    """What the rows, the columns and the colour of a heat map mean.

    `low`, `middle` and `high` are the values of the two strongest colours and of white. A quantity
    that cannot be negative has `low` and `middle` at zero, and one strong colour.
    """

    rows: str
    columns: str
    value: str
    low: float
    middle: float
    high: float
    number_format: str = ".2f"

    @property
    def scale(self) -> Spec:
        """The colours of values."""
        low = {} if self.low == self.middle else {self.low: theme.COLD}
        stops = {**low, self.middle: "#ffffff", self.high: theme.WARM}
        return {
            "domain": list(stops),
            "range": list(stops.values()),
            "interpolate": "rgb",
            "clamp": True,
        }


def heat_map(
    name: str,
    title: str,
    caption: str,
    data: pl.DataFrame,
    axes: HeatAxes,
    runs: Sequence[int] = (),
) -> Figure:
    """One panel per value of `panel`; `data` has `panel`, `row`, `column` and `value`.

    Rows, columns and panels keep the order in which they first appear. A missing value is an empty
    cell. A column `text`, if there is one, is printed instead of the value.
    """
    panels = list(dict.fromkeys(data["panel"]))
    columns = data["column"].n_unique()
    narrowest = columns * _NARROWEST_CELL + _LABELS
    side_by_side = min(len(panels), max(1, int((theme.WIDTH + _GAP) // (narrowest + _GAP))))
    space = (theme.WIDTH - _GAP * (side_by_side - 1)) / side_by_side - _LABELS
    width = min(space, columns * _WIDEST_CELL)
    charts = [
        _panel(data.filter(panel=panel), axes).properties(
            title=panel, width=width, height=_CELL_HEIGHT * data["row"].n_unique()
        )
        for panel in panels
    ]
    chart = in_columns(*charts, columns=side_by_side, spacing=_GAP).resolve_scale(color="shared")
    return Figure(name, title, caption, chart, data, tuple(runs))


def _panel(data: pl.DataFrame, axes: HeatAxes) -> Compound:
    base = Chart(inline(_with_ink(data, axes)))
    plain: dict[str, Any] = {
        "ticks": False,
        "domain": False,
        "labelColor": theme.INK,
        "labelOverlap": False,
    }
    # Names that are wider than a cell would cover each other.
    angle = -35 if names.width(data["column"]) > _STRAIGHT else 0
    x = channel(
        "column:N",
        sort=None,
        title=axes.columns,
        axis={"orient": "top", "labelAngle": angle, **plain},
    )
    y = channel("row:N", sort=None, title=axes.rows, axis={**plain})
    legend = {
        "title": axes.value,
        "orient": "top",
        "gradientLength": 260,
        "titleLimit": 500,
        "format": axes.number_format,
    }
    tips: list[Shown] = [channel("row:N", title=axes.rows), channel("column:N", title=axes.columns)]
    if "text" in data.columns:
        number, tip = channel("text:N"), channel("text:N", title=axes.value)
    else:
        number = channel("value:Q", format=axes.number_format)
        tip = channel("value:Q", title=axes.value, format=axes.number_format)
    tips.append(tip)
    cells = base.mark("rect", stroke=theme.FAINT, strokeWidth=1).encode(
        x=x, y=y, color=channel("value:Q", scale=axes.scale, legend=legend), tooltip=tips
    )
    ink = channel("ink:N", scale=None)
    numbers = base.where("isValid(datum.value)").mark("text", fontSize=12)
    chart: Compound = layered(cells, numbers.encode(x=x, y=y, text=number, fill=ink, tooltip=tips))
    return chart


def _with_ink(data: pl.DataFrame, axes: HeatAxes) -> pl.DataFrame:
    """The colour of each cell's text: what can be read on it."""
    inks = [_ink(value, axes) for value in data["value"].cast(pl.Float64).fill_null(axes.middle)]
    return data.with_columns(ink=pl.Series(inks, dtype=pl.String))


def _ink(value: float, axes: HeatAxes) -> str:
    cell = theme.luminance(_colour(value, axes))
    # Contrast is (lighter + 0.05) / (darker + 0.05): equal for both at the root of 1.05 · 0.05.
    return _BLACK if (cell + 0.05) ** 2 > 1.05 * 0.05 else _WHITE


def _colour(value: float, axes: HeatAxes) -> tuple[float, ...]:
    """The colour of a cell as shares of red, green and blue, as its scale interpolates them."""
    strong, end = (theme.WARM, axes.high) if value >= axes.middle else (theme.COLD, axes.low)
    share = min(1.0, (value - axes.middle) / (end - axes.middle)) if end != axes.middle else 0.0
    return tuple(1 + (part / 255 - 1) * share for part in theme.channels(strong))
