"""A recorded flow and the same flow simulated, over one axis of time, panel below panel."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from weir.plots import theme
from weir.plots.figure import Figure, inline, layered

OURS, THEIRS = "Weir", "Linux"

PANELS = {
    "cwnd_segments": "cwnd, segments",
    "srtt_ms": "srtt, ms",
    "goodput_mbps": "goodput, Mbit/s",
}

_HEIGHT = 120
_FLOWS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
_WIDTHS, _OPACITIES = (1.3, 4.0), (1.0, 0.4)
_GOODPUT_SLICE_S = 0.5

READING = (
    "The wide pale line is Linux, the thin one ours: where ours runs inside it, window, delay and "
    f"goodput are the kernel's at that moment. Goodput is averaged over {_GOODPUT_SLICE_S} s; its "
    "dips and peaks in pairs are losses, until whose repair nothing more is acknowledged in order."
)
"""How to look at the picture."""


def overlay(name: str, title: str, caption: str, data: pl.DataFrame, runs: Sequence[int]) -> Figure:
    """Window, smoothed RTT and goodput of each flow.

    `data` has `source` (ours or Linux), `flow` (a name), `t_s` and the columns of `PANELS`.
    """
    smooth = data.group_by(
        "source",
        "flow",
        ((pl.col("t_s") / _GOODPUT_SLICE_S).ceil() * _GOODPUT_SLICE_S).alias("t_s"),
        maintain_order=True,
    ).agg(pl.col("goodput_mbps").mean())
    frames = {
        column: (smooth if column == "goodput_mbps" else data).select(
            "source", "flow", "t_s", pl.col(column).alias("value")
        )
        for column in PANELS
    }
    end = float(data["t_s"].max() or 1.0)  # type: ignore[arg-type]
    last, flows = list(PANELS)[-1], data["flow"].unique(maintain_order=True).to_list()
    panels = [
        _panel(frames[column], heading, flows, _time(end, has_numbers=column == last))
        for column, heading in PANELS.items()
    ]
    chart = alt.vconcat(*panels, spacing=10).resolve_scale(x="shared")
    return Figure(name, title, caption, chart, data, tuple(runs))


def _panel(data: pl.DataFrame, heading: str, flows: list[str], time: alt.X) -> alt.LayerChart:
    sources = [THEIRS, OURS]
    legend = alt.Legend(title=None, symbolType="stroke")
    colours = alt.Scale(domain=flows, range=list(_FLOWS[: len(flows)]))
    many = legend if len(flows) > 1 else None
    width = alt.Scale(domain=sources, range=list(reversed(_WIDTHS)))
    opacity = alt.Scale(domain=sources, range=list(reversed(_OPACITIES)))
    return layered(
        *(
            alt.Chart(inline(data.filter(source=source)))
            .mark_line(strokeJoin="round", clip=True)
            .encode(
                x=time,
                y=alt.Y("value:Q", title=heading, axis=alt.Axis(tickCount=4)),
                color=alt.Color("flow:N", scale=colours, legend=many, sort=None),
                strokeWidth=alt.StrokeWidth("source:N", scale=width, legend=legend),
                opacity=alt.Opacity("source:N", scale=opacity, legend=legend),
            )
            for source in sources
        )
    ).properties(width=theme.WIDTH - 110, height=_HEIGHT)


def _time(end: float, *, has_numbers: bool) -> alt.X:
    axis = (
        alt.Axis(grid=False, title="time, s", tickCount=12)
        if has_numbers
        else alt.Axis(grid=False, title=None, labels=False, ticks=False)
    )
    return alt.X("t_s:Q", axis=axis, scale=alt.Scale(nice=False, domain=[0, end]))
