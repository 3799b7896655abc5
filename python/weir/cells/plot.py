"""Published numbers next to ours: one panel per source, the same axes in all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from weir.cells.protocol import sources
from weir.graphics import encode, theme
from weir.graphics.chart import (
    Chart,
    Compound,
    Spec,
    below_each_other,
    beside_each_other,
    channel,
    inline,
    layered,
)
from weir.graphics.figure import Figure

_HEIGHT = 220
_LOG_FROM = 20.0
_LOWEST = 10.0


_CAPTION = (
    "Where the lines of two panels have the same order, heights and slopes, ours repeats what was "
    "published; bars are 95 % intervals over our seeds."
)


def comparison(
    name: str,
    cells: Sequence[Mapping[str, Any]],
    *,
    title: str = "",
    caption: str = _CAPTION,
    quantities: Mapping[str, str] | None = None,
) -> Figure:
    """One table of a study as curves: published, and each of our columns.

    Cells of several units have a line of panels for each. `quantities` says by its unit what is
    measured or varied, for the axes.
    """
    data = _values(cells)
    rows = list(dict.fromkeys(data["row"]))
    named = quantities or {}
    measured = title or name
    axis = _column_axis([str(cell["column"]) for cell in cells], named)
    shown = [source for source in sources(cells) if data.filter(source=source).height]
    width = (theme.WIDTH - 60) // max(len(shown), 1) - 50
    lines = []
    for unit in dict.fromkeys(str(cell.get("unit", "")) for cell in cells):
        own = data.filter(unit=unit)
        text = _title(unit, named.get(unit, measured))
        panels = [
            _panel(own.filter(source=source), source, rows, axis, text, is_log=_is_wide(own))
            for source in shown
        ]
        sized = [panel.properties(width=width, height=_HEIGHT) for panel in panels]
        lines.append(
            beside_each_other(*sized, spacing=20).resolve_scale(y="shared", color="shared")
        )
    chart = lines[0] if len(lines) == 1 else below_each_other(*lines, spacing=20)
    return Figure(f"study-{name}", title or f"{name}: published and ours", caption, chart, data)


def _panel(
    data: pl.DataFrame,
    source: str,
    rows: Sequence[str],
    axis: Spec,
    title: str | None,
    *,
    is_log: bool,
) -> Compound:
    colours = theme.stack_colours(rows)
    scale = {"domain": list(colours), "range": list(colours.values())}
    legend = {"title": None, "orient": "top", "columns": 6, "symbolType": "stroke"}
    colour = channel("row:N", scale=scale, legend=legend)
    y_scale = {"type": "log"} if is_log else {"zero": True}
    y = channel("value:Q", title=title, scale=y_scale)
    tips = encode.interval("row:N", "column:N")
    base = Chart(inline(data))
    layers = [
        base.mark("line").encode(
            x=axis,
            y=y,
            color=colour,
            strokeWidth=encode.tapering("row", rows, 4.2, 1.2),
        ),
        base.mark("point", filled=True, opacity=1).encode(
            x=axis,
            y=y,
            color=colour,
            size=encode.tapering("row", rows, 110, 24),
            tooltip=tips,
        ),
    ]
    bars = data.drop_nulls("lo")
    if is_log:  # an interval that reaches zero has no end on such an axis
        bars = bars.with_columns(pl.col("lo").clip(pl.col("value") / _LOWEST))
    if not bars.is_empty():
        bar = Chart(inline(bars)).mark("rule", strokeWidth=1.2)
        layers.append(bar.encode(x=axis, y=channel("lo:Q", title=title), y2="hi:Q", color=colour))
    return layered(*layers).properties(title=heading(source))


def _values(cells: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    places = _places([str(cell["column"]) for cell in cells])
    found = []
    for cell in cells:
        column = str(cell["column"])
        for source in sources(cells):
            value = cell.get(source)
            measured = value if isinstance(value, Mapping) else {"mean": value}
            mean, low, high = (_number(measured.get(key)) for key in ("mean", "lo", "hi"))
            if mean is not None:
                row = (source, str(cell["row"]), column, places[column], mean, low, high)
                found.append((*row, measured.get("n"), str(cell.get("unit", ""))))
    at = pl.Float64 if all(isinstance(place, float) for place in places.values()) else pl.String
    schema = {
        **dict.fromkeys(("source", "row", "column"), pl.String),
        "at": at,
        **dict.fromkeys(("value", "lo", "hi"), pl.Float64),
        "n": pl.Int64,
        "unit": pl.String,
    }
    return pl.DataFrame(found, schema, orient="row")


def heading(source: str) -> str:
    """The name of a column of values, for people."""
    return source.replace("_", " ")


def _title(unit: str, quantity: str | None) -> str | None:
    if quantity:
        return f"{quantity}, {unit}"
    return f"in {unit}" if unit else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _places(columns: Sequence[str]) -> dict[str, float | str]:
    names = list(dict.fromkeys(columns))
    numbers = theme.numeric_axis(names)
    places: Sequence[float | str] = names if numbers is None else numbers[0]
    return dict(zip(names, places, strict=True))


def _column_axis(columns: Sequence[str], quantities: Mapping[str, str]) -> Spec:
    names = list(dict.fromkeys(columns))
    numbers = theme.numeric_axis(names)
    if numbers is None:
        return channel("at:O", title=None, sort=None, axis={"labelAngle": 0})
    axis = theme.number_axis(numbers[0])
    unit = numbers[1]
    title = _title(unit, quantities[unit]) if unit in quantities else unit or None
    return channel("at:Q", title=title, axis=axis, scale={"padding": 8})


def _is_wide(data: pl.DataFrame) -> bool:
    low, high = data["value"].min(), data["value"].max()
    return isinstance(low, float) and isinstance(high, float) and 0 < low < high / _LOG_FROM
