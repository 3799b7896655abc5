"""The picture of study `predict`: predicted against measured values."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weir.cells.protocol import Cell
from weir.graphics import theme
from weir.graphics.chart import Chart, Compound, beside_each_other, channel, inline, layered
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
    scale = {"type": "log", "domain": [low, high], "nice": False}
    base = Chart(inline(frame)).encode(
        x=channel("measured:Q", scale=scale, title=f"measured {frame['metric'][0]}"),
        color=channel("controller:N", legend={"title": None, "orient": "bottom"}),
    )
    y = channel("predicted:Q", scale=scale, title=f"predicted {frame['metric'][0]}")
    tooltip = ["path:N", "controller:N", "measured:Q", "predicted:Q"]
    lines = base.mark("rule", clip=True).encode(y=channel("lo:Q", scale=scale), y2="hi:Q")
    points = base.mark("circle", size=45, opacity=0.9).encode(y=y, tooltip=tooltip)
    ends = pl.DataFrame({"measured": [low, high], "predicted": [low, high]})
    diagonal = (
        Chart(inline(ends))
        .mark("line", color=theme.FAINT, strokeDash=[4, 3])
        .encode(x=channel("measured:Q", scale=scale), y=y)
    )
    return layered(diagonal, lines, points).properties(width=_SIZE, height=_SIZE)
