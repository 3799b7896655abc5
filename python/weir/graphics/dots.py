"""A column of names, each with its mean and interval, against a line that says what is equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from weir.graphics import names, theme
from weir.graphics.chart import Chart, Compound, Shown, beside_each_other, channel, inline, layered
from weir.graphics.figure import Figure

_ROW = 22
_LABELS = 190
_GAP = 34


@dataclass(frozen=True, slots=True)
class DotAxes:
    """What the position of a dot means, and where a dashed line stands."""

    x: str
    level: float


def dots(
    name: str,
    title: str,
    caption: str,
    data: pl.DataFrame,
    axes: DotAxes,
    runs: Sequence[int] = (),
) -> Figure:
    """Panels side by side; `data` has `panel`, `row`, `group`, `value`, `lo`, `hi`.

    Rows keep their order; rows of one `group` have one colour.
    """
    panels = list(dict.fromkeys(data["panel"]))
    width = (theme.WIDTH - _LABELS - _GAP * (len(panels) - 1)) // len(panels)
    height = names.row_height(data["row"], _ROW) * data["row"].n_unique()
    charts = [
        _panel(data.filter(panel=panel), axes, has_names=panel == panels[0]).properties(
            title=panel, width=width, height=height
        )
        for panel in panels
    ]
    chart = beside_each_other(*charts, spacing=_GAP).resolve_scale(x="shared", color="shared")
    return Figure(name, title, caption, chart, data, tuple(runs))


def _panel(data: pl.DataFrame, axes: DotAxes, *, has_names: bool) -> Compound:
    colours = theme.stack_colours(data["group"])
    scale = {"domain": list(colours), "range": list(colours.values())}
    legend = {"title": "what is changed", "orient": "top"} if len(colours) > 1 else None
    colour = channel("group:N", scale=scale, legend=legend)
    axis = {"title": None, "labels": has_names, "ticks": False, "domain": False}
    y = channel("row:N", sort=None, axis=axis)
    x = channel("value:Q", title=axes.x, scale={"zero": False})
    base = Chart(inline(data))
    tips: list[Shown] = ["row:N", channel("value:Q", format=".4~g"), "lo:Q", "hi:Q"]
    layers = [
        base.mark("point", filled=True, size=70, opacity=1).encode(
            x=x, y=y, color=colour, tooltip=tips
        )
    ]
    spread = data.drop_nulls("lo")
    if not spread.is_empty():
        ends = Chart(inline(spread)).mark("rule", strokeWidth=1.6)
        layers.insert(0, ends.encode(x=channel("lo:Q", title=axes.x), x2="hi:Q", y=y, color=colour))
    level = Chart(inline(pl.DataFrame({"level": [axes.level]})))
    rule = level.mark("rule", color=theme.SOFT, strokeDash=[5, 3])
    layers.insert(0, rule.encode(x=channel("level:Q", title=axes.x)))
    return layered(*layers)
