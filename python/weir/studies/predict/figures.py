"""The picture of study `predict`: predicted against measured values."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from weir.cells.protocol import Cell
from weir.graphics import theme
from weir.graphics.compound import Compound, beside_each_other, inline, layered
from weir.plots import Figure

_SIZE = 270


def scatter(cells: Sequence[Cell], runs: tuple[int, ...]) -> Figure:
    """A panel per metric, with a point per path and controller."""
    rows = [
        {
            "metric": f"{one['table']}, {one['unit']}",
            "controller": one["column"],
            "path": one["row"],
            "measured": one["measured"]["mean"],
            "predicted": one["predicted"]["mean"],
            "lo": one["predicted"]["lo"],
            "hi": one["predicted"]["hi"],
        }
        for one in cells
        if "predicted" in one
    ]
    frame = pl.DataFrame(rows)
    panels = [_panel(part) for part in frame.partition_by("metric", maintain_order=True)]
    caption = (
        "On the diagonal a prediction equals what was measured. Lines are 95 % intervals of the "
        "predictions. Both axes are logarithmic."
    )
    chart = beside_each_other(*panels, spacing=30)
    return Figure("predict", "Predicted and measured", caption, chart, frame, runs)


def _panel(frame: pl.DataFrame) -> Compound:
    values = pl.concat([frame["measured"], frame["predicted"]])
    low, high = float(values.min()) / 1.3, float(values.max()) * 1.3  # type: ignore[arg-type]
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    base = alt.Chart(inline(frame)).encode(
        x=alt.X("measured:Q", scale=scale, title=f"measured {frame['metric'][0]}"),
        color=alt.Color("controller:N", legend=alt.Legend(title=None, orient="bottom")),
    )
    y = alt.Y("predicted:Q", scale=scale, title=f"predicted {frame['metric'][0]}")
    tooltip = ["path:N", "controller:N", "measured:Q", "predicted:Q"]
    lines = base.mark_rule(clip=True).encode(y=alt.Y("lo:Q", scale=scale), y2=alt.Y2("hi:Q"))
    points = base.mark_circle(size=45, opacity=0.9).encode(y=y, tooltip=tooltip)
    ends = pl.DataFrame({"measured": [low, high], "predicted": [low, high]})
    diagonal = (
        alt.Chart(inline(ends))
        .mark_line(color=theme.FAINT, strokeDash=[4, 3])
        .encode(x=alt.X("measured:Q", scale=scale), y=y)
    )
    return layered(diagonal, lines, points).properties(width=_SIZE, height=_SIZE)
