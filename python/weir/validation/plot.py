"""How close many pairs of runs are: a dot per pair, in a line per controller and in a square."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weir.graphics import theme
from weir.graphics.chart import (
    Chart,
    Compound,
    Shown,
    Spec,
    beside_each_other,
    channel,
    inline,
    layered,
)
from weir.graphics.figure import Figure

_ROW = 20
_LABELS = 70
_GAP = 50
_SHARE = 0.56
"""Of the width, for the lines."""


def agreement(
    name: str,
    title: str,
    caption: str,
    data: pl.DataFrame,
    tolerance_percent: float,
    runs: Sequence[int] = (),
) -> Figure:
    """`data` has `case`, `controller`, `group`, `goodput_percent`, `ours` and `linux`.

    `goodput_percent` is by how much ours is above the kernel's, and dashed lines stand at the
    tolerance. `ours` and `linux` are retransmissions.
    """
    height = _ROW * data["controller"].n_unique()
    wide = round((theme.WIDTH - _LABELS - _GAP) * _SHARE)
    groups = list(dict.fromkeys(data["group"].sort()))
    colours = {"domain": groups, "range": [theme.COLD, theme.WARM, "#009e73"][: len(groups)]}
    colour = channel("group:N", scale=colours, legend={"title": None, "orient": "top"})
    chart = beside_each_other(
        _lines(data, colour, tolerance_percent).properties(width=wide, height=height),
        _square(data, colour).properties(width=theme.WIDTH - _LABELS - _GAP - wide, height=height),
        spacing=_GAP,
    ).resolve_scale(color="shared")
    return Figure(name, title, caption, chart, data, tuple(runs))


def _lines(data: pl.DataFrame, colour: Spec, tolerance: float) -> Compound:
    x = channel("goodput_percent:Q", title="goodput against Linux's, %")
    y = channel("controller:N", title=None, axis={"ticks": False, "domain": False})
    rows = data.select("case", "controller", "group", "goodput_percent").drop_nulls()
    dots = Chart(inline(rows)).mark("point", filled=True, size=26, opacity=0.65)
    tips: list[Shown] = ["case:N", channel("goodput_percent:Q", format=".3~g")]
    levels = pl.DataFrame({"level": [-tolerance, 0.0, tolerance]})
    rules = Chart(inline(levels)).mark("rule", color=theme.SOFT, strokeDash=[5, 3])
    return layered(
        rules.encode(x=channel("level:Q", title="goodput against Linux's, %")),
        dots.encode(x=x, y=y, color=colour, tooltip=tips),
    )


def _square(data: pl.DataFrame, colour: Spec) -> Compound:
    rows = data.select("case", "controller", "group", "ours", "linux").drop_nulls()
    most = max(float(rows[side].max() or 1.0) for side in ("ours", "linux"))  # type: ignore[arg-type]
    scale = {"type": "symlog", "constant": 5, "domain": [0, most * 1.1], "nice": False}
    axis = {"values": [0, 10, 100, 1_000, 10_000]}
    x = channel("linux:Q", title="retransmissions, Linux", scale=scale, axis=axis)
    y = channel("ours:Q", title="retransmissions, Weir", scale=scale, axis=axis)
    dots = Chart(inline(rows)).mark("point", filled=True, size=26, opacity=0.65)
    tips: list[Shown] = ["case:N", "linux:Q", "ours:Q"]
    ends = pl.DataFrame({"linux": [0.0, most], "ours": [0.0, most]})
    same = Chart(inline(ends)).mark("line", color=theme.SOFT, strokeDash=[5, 3])
    return layered(same.encode(x=x, y=y), dots.encode(x=x, y=y, color=colour, tooltip=tips))
