"""Groups of bars with intervals, next to marks for what was published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from weir.graphics import encode, theme
from weir.graphics.compound import Compound, in_columns, inline, layered
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
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    legend = alt.Legend(title=None, orient="top", columns=5)
    x = alt.X("group:N", title=axes.x, sort=None, axis=alt.Axis(labelAngle=0))
    own = list(dict.fromkeys(data["series"]))
    offset = alt.XOffset("series:N", sort=own)
    y = alt.Y("value:Q", title=axes.y, scale=alt.Scale(zero=True))
    tips = encode.tips("group:N", "series:N", alt.Tooltip("value:Q", format=".4~g"), "lo:Q", "hi:Q")
    base = alt.Chart(inline(data))
    layers = [
        base.mark_bar(opacity=0.85).encode(
            x=x,
            xOffset=offset,
            y=y,
            color=alt.Color("series:N", scale=scale, legend=legend),
            tooltip=[*tips, alt.Tooltip("published:Q")],
        )
    ]
    spread = data.drop_nulls("lo")
    if not spread.is_empty():
        ends = alt.Chart(inline(spread)).mark_rule(strokeWidth=1.4, color=theme.INK)
        layers.append(
            ends.encode(x=x, xOffset=offset, y=alt.Y("lo:Q", title=axes.y), y2=alt.Y2("hi:Q"))
        )
    printed = data.drop_nulls("published")
    if not printed.is_empty():
        marks = alt.Chart(inline(printed)).mark_tick(color="black", thickness=3, size=18)
        layers.append(marks.encode(x=x, xOffset=offset, y=alt.Y("published:Q", title=axes.y)))
    return layered(*layers)
