"""How close many pairs of runs are: a dot per pair, in a line per controller and in a square."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from weir.graphics import encode, theme
from weir.graphics.compound import Compound, beside_each_other, inline, layered
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
    colours = alt.Scale(domain=groups, range=[theme.COLD, theme.WARM, "#009e73"][: len(groups)])
    colour = alt.Color("group:N", scale=colours, legend=alt.Legend(title=None, orient="top"))
    chart = beside_each_other(
        _lines(data, colour, tolerance_percent).properties(width=wide, height=height),
        _square(data, colour).properties(width=theme.WIDTH - _LABELS - _GAP - wide, height=height),
        spacing=_GAP,
    ).resolve_scale(color="shared")
    return Figure(name, title, caption, chart, data, tuple(runs))


def _lines(data: pl.DataFrame, colour: alt.Color, tolerance: float) -> Compound:
    x = alt.X("goodput_percent:Q", title="goodput against Linux's, %")
    y = alt.Y("controller:N", title=None, axis=alt.Axis(ticks=False, domain=False))
    rows = data.select("case", "controller", "group", "goodput_percent").drop_nulls()
    dots = alt.Chart(inline(rows)).mark_point(filled=True, size=26, opacity=0.65)
    tips = encode.tips("case:N", alt.Tooltip("goodput_percent:Q", format=".3~g"))
    levels = pl.DataFrame({"level": [-tolerance, 0.0, tolerance]})
    rules = alt.Chart(inline(levels)).mark_rule(color=theme.SOFT, strokeDash=[5, 3])
    return layered(
        rules.encode(x=alt.X("level:Q", title="goodput against Linux's, %")),
        dots.encode(x=x, y=y, color=colour, tooltip=tips),
    )


def _square(data: pl.DataFrame, colour: alt.Color) -> Compound:
    rows = data.select("case", "controller", "group", "ours", "linux").drop_nulls()
    most = max(float(rows[side].max() or 1.0) for side in ("ours", "linux"))  # type: ignore[arg-type]
    scale = alt.Scale(type="symlog", constant=5, domain=[0, most * 1.1], nice=False)
    axis = alt.Axis(values=[0, 10, 100, 1_000, 10_000])
    x = alt.X("linux:Q", title="retransmissions, Linux", scale=scale, axis=axis)
    y = alt.Y("ours:Q", title="retransmissions, Weir", scale=scale, axis=axis)
    dots = alt.Chart(inline(rows)).mark_point(filled=True, size=26, opacity=0.65)
    tips = encode.tips("case:N", "linux:Q", "ours:Q")
    ends = pl.DataFrame({"linux": [0.0, most], "ours": [0.0, most]})
    same = alt.Chart(inline(ends)).mark_line(color=theme.SOFT, strokeDash=[5, 3])
    return layered(same.encode(x=x, y=y), dots.encode(x=x, y=y, color=colour, tooltip=tips))
