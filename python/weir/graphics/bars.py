"""Groups of bars with intervals, next to marks for what was published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from weir.graphics import theme
from weir.graphics.chart import Chart, Compound, Shown, channel, in_columns, inline, layered
from weir.graphics.figure import Figure

_HEIGHT = 190
_GAP = 30
_MARGIN = 55


@dataclass(frozen=True, slots=True)
class BarAxes:
    """What the groups and the height of bars mean."""

    x: str
    y: str
    columns: int = 3
    """Panels per row."""


def bars(
    name: str,
    title: str,
    caption: str,
    data: pl.DataFrame,
    axes: BarAxes,
    runs: Sequence[int] = (),
) -> Figure:
    """One panel per value of `panel`, all with the same scales.

    `data` has `panel`, `group`, `series`, `value`, `lo`, `hi` and `published`, which is a black
    line across the bar.
    """
    panels = list(dict.fromkeys(data["panel"]))
    columns = min(len(panels), axes.columns)
    width = (theme.WIDTH - _GAP * (columns - 1)) // columns - _MARGIN
    series = list(dict.fromkeys(data["series"]))
    charts = [
        _panel(data.filter(panel=panel), series, axes).properties(
            title=panel, width=width, height=_HEIGHT
        )
        for panel in panels
    ]
    chart = in_columns(*charts, columns=columns, spacing=_GAP).resolve_scale(
        y="shared", color="shared", xOffset="independent"
    )
    return Figure(name, title, caption, chart, data, tuple(runs))


def _panel(data: pl.DataFrame, series: Sequence[str], axes: BarAxes) -> Compound:
    colours = theme.stack_colours(series)
    scale = {"domain": list(colours), "range": list(colours.values())}
    legend = {"title": None, "orient": "top", "columns": 5}
    x = channel("group:N", title=axes.x, sort=None, axis={"labelAngle": 0})
    own = list(dict.fromkeys(data["series"]))
    offset = channel("series:N", sort=own)
    y = channel("value:Q", title=axes.y, scale={"zero": True})
    tips: list[Shown] = ["group:N", "series:N", channel("value:Q", format=".4~g"), "lo:Q", "hi:Q"]
    base = Chart(inline(data))
    layers = [
        base.mark("bar", opacity=0.85).encode(
            x=x,
            xOffset=offset,
            y=y,
            color=channel("series:N", scale=scale, legend=legend),
            tooltip=[*tips, "published:Q"],
        )
    ]
    spread = data.drop_nulls("lo")
    if not spread.is_empty():
        ends = Chart(inline(spread)).mark("rule", strokeWidth=1.4, color=theme.INK)
        layers.append(ends.encode(x=x, xOffset=offset, y=channel("lo:Q", title=axes.y), y2="hi:Q"))
    printed = data.drop_nulls("published")
    if not printed.is_empty():
        marks = Chart(inline(printed)).mark("tick", color="black", thickness=3, size=18)
        layers.append(marks.encode(x=x, xOffset=offset, y=channel("published:Q", title=axes.y)))
    return layered(*layers)
