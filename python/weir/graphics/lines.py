"""Lines over numbers or names, one per series, each point with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from weir.graphics import encode, theme
from weir.graphics.chart import Chart, Compound, Spec, channel, in_columns, inline, layered
from weir.graphics.figure import Figure

_HEIGHT = 230
_GAP = 30
_MARGIN = 55
_DECADE = 10.0


@dataclass(frozen=True, slots=True)
class LineAxes:
    """What the axes of a line plot mean, and which of them are logarithmic."""

    x: str
    y: str
    is_x_log: bool = False
    is_y_log: bool = False
    columns: int = 2
    """Panels per row."""
    level: float | None = None
    """Where a dashed line shows what is fair, or possible."""
    y_range: tuple[float, float] | None = None
    """What the vertical axis shows, if not everything from zero on."""
    neighbours: Sequence[str] = ()
    """Series of figures nearby: one that is here too has the same colour and mark."""


def lines(
    name: str,
    title: str,
    caption: str,
    data: pl.DataFrame,
    axes: LineAxes,
    runs: Sequence[int] = (),
) -> Figure:
    """One panel per value of `panel`; `data` has `panel`, `series`, `at`, `value`, `lo`, `hi`, `n`.

    `at` holds numbers or, for an axis of names, text. All panels share their scales. Colours are
    those of `theme.stack_colours`, and each series has a shape of its own besides.
    """
    panels = list(dict.fromkeys(data["panel"]))
    columns = min(len(panels), axes.columns)
    width = (theme.WIDTH - _GAP * (columns - 1)) // columns - _MARGIN
    series = list(dict.fromkeys(data["series"]))
    charts = [
        _panel(data.filter(panel=panel), series, axes, data["at"]).properties(
            title=panel, width=width, height=_HEIGHT
        )
        for panel in panels
    ]
    chart = in_columns(*charts, columns=columns, spacing=_GAP).resolve_scale(
        x="shared", y="shared", color="shared", shape="shared"
    )
    return Figure(name, title, caption, chart, data, tuple(runs))


def lines_if_any(
    name: str,
    title: str,
    caption: str,
    data: pl.DataFrame,
    axes: LineAxes,
    runs: Sequence[int] = (),
) -> list[Figure]:
    """The same in a list, which is empty where nothing was measured, as of too few requests."""
    return [] if data.is_empty() else [lines(name, title, caption, data, axes, runs)]


def _own(chosen: Mapping[str, str], series: Sequence[str]) -> dict[str, str]:
    return {name: chosen[name] for name in series}


def _panel(
    data: pl.DataFrame, series: Sequence[str], axes: LineAxes, places: pl.Series
) -> Compound:
    colours = _own(theme.stack_colours([*axes.neighbours, *series]), series)
    scale = {"domain": list(colours), "range": list(colours.values())}
    legend = None
    if len(series) > 1:
        legend = {"title": None, "orient": "top", "columns": 7, "symbolSize": 70}
    colour = channel("series:N", scale=scale, legend=legend)
    shapes = _own(theme.stack_shapes([*axes.neighbours, *series]), series)
    shape_scale = {"domain": list(shapes), "range": list(shapes.values())}
    shape = channel("series:N", scale=shape_scale, legend=legend)
    x = _places(axes, places)
    y_scale: Spec = {"zero": True}
    if axes.y_range is not None:
        y_scale = {"domain": list(axes.y_range), "clamp": True}
    if axes.is_y_log:
        y_scale = {"type": "log", "nice": False, "padding": 8}
    y = channel("value:Q", title=axes.y, scale=y_scale)
    tips = encode.interval("series:N", "at:N")
    width = encode.tapering("series", series, 3.4, 1.2)
    base = Chart(inline(data))
    bars = data.drop_nulls("lo")
    if axes.is_y_log:  # an interval that reaches zero has no end on such an axis
        bars = bars.with_columns(pl.col("lo").clip(pl.col("value") / _DECADE))
    layers = [
        base.mark("line").encode(x=x, y=y, color=colour, strokeWidth=width),
        base.mark("point", filled=True, opacity=1).encode(
            x=x,
            y=y,
            color=colour,
            shape=shape,
            size=encode.tapering("series", series, 110, 40),
            tooltip=tips,
        ),
    ]
    if not bars.is_empty():
        ends = Chart(inline(bars)).mark("rule", strokeWidth=1.4)
        low = channel("lo:Q", title=axes.y, scale=y_scale)
        layers.insert(0, ends.encode(x=x, y=low, y2="hi:Q", color=colour))
    if axes.level is not None:
        level = Chart(inline(pl.DataFrame({"level": [axes.level]})))
        rule = level.mark("rule", color=theme.SOFT, strokeDash=[5, 3])
        layers.append(rule.encode(y=channel("level:Q", title=axes.y, scale=y_scale)))
    return layered(*layers)


def _places(axes: LineAxes, places: pl.Series) -> Spec:
    if not places.dtype.is_numeric():
        return channel("at:O", title=axes.x, sort=None, axis={"labelAngle": 0})
    axis = theme.number_axis([float(place) for place in places])
    if axes.is_x_log:
        scale = {"type": "log", "nice": False, "padding": 12}
    else:
        scale = {"zero": False, "nice": False, "padding": 12}
    return channel("at:Q", title=axes.x, axis=axis, scale=scale)
