"""A recorded flow and the same flow simulated, over one axis of time, panel below panel."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weir.graphics import encode, theme
from weir.graphics.chart import Chart, Compound, Spec, below_each_other, channel, inline, layered
from weir.graphics.explore import Explorer, ExplorerPanel, Line
from weir.graphics.figure import Figure

OURS, THEIRS = "Weir", "Linux"

PANELS = {
    "cwnd_segments": "cwnd, segments",
    "srtt_ms": "srtt, ms",
    "goodput_mbps": "goodput, Mbit/s",
}

_HEIGHT = 120
_SOURCES = (THEIRS, OURS)
_COLOURS = {
    THEIRS: ("#d55e00", "#e69f00", "#cc79a7", "#6e4b2a"),
    OURS: ("#0072b2", "#009e73", "#56b4e9", "#7f7f7f"),
}
"""Of each flow: Linux has the warm colours, we have the cold ones."""
_WIDTHS, _OPACITIES = (4.0, 1.3), (0.45, 1.0)
_GOODPUT_SLICE_S = 0.5

READING = (
    "The wide pale lines in warm colours are Linux, the thin ones in cold colours ours. Where ours "
    "runs inside the other, window, delay and goodput are the kernel's at that moment. Goodput is "
    f"averaged over {_GOODPUT_SLICE_S} s; its dips and peaks in pairs are losses, until whose "
    "repair nothing more is acknowledged in order."
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

    def chart() -> Compound:
        panels = [
            _panel(frames[column], heading, flows, encode.time(end, is_last=column == last))
            for column, heading in PANELS.items()
        ]
        linked: Compound = below_each_other(*panels, spacing=10).resolve_scale(x="shared")
        return linked

    def explorer() -> Explorer:
        panels = [
            ExplorerPanel(heading.partition(",")[0], heading, _lines(frames[column], flows))
            for column, heading in PANELS.items()
        ]
        return Explorer(panels, end, name, is_y_shared=False)

    return Figure(name, title, caption, chart, data, tuple(runs), explorer=explorer)


def _lines(data: pl.DataFrame, flows: Sequence[str]) -> list[Line]:
    """The lines of Linux below ours, in the order of the flows."""
    parts = data.drop_nulls("value").partition_by("source", "flow", as_dict=True)
    return [
        Line(
            _name(source, flow, flows),
            _COLOURS[source][flows.index(flow) % len(_COLOURS[source])],
            part["t_s"],
            part["value"],
            width=width,
            alpha=alpha,
        )
        for source, width, alpha in zip(_SOURCES, _WIDTHS, _OPACITIES, strict=True)
        for flow in flows
        if (part := parts.get((source, flow))) is not None
    ]


def _name(source: str, flow: str, flows: Sequence[str]) -> str:
    return f"{flow}, {source}" if len(flows) > 1 else source


def _panel(data: pl.DataFrame, heading: str, flows: Sequence[str], time: Spec) -> Compound:
    colours = {line.name: line.colour for line in _lines(data, flows)}
    scale = {"domain": list(colours), "range": list(colours.values())}
    colour = channel(
        "line:N", scale=scale, legend={"title": None, "symbolType": "stroke"}, sort=None
    )
    names = pl.DataFrame(
        [(source, flow, _name(source, flow, flows)) for source in _SOURCES for flow in flows],
        ["source", "flow", "line"],
        orient="row",
    )
    named = data.join(names, on=["source", "flow"], how="left", maintain_order="left")
    return layered(
        *(
            Chart(inline(named.filter(source=source)))
            .mark("line", strokeJoin="round", clip=True, strokeWidth=width, opacity=opacity)
            .encode(
                x=time,
                y=channel("value:Q", title=heading, axis={"tickCount": 4}),
                color=colour,
            )
            for source, width, opacity in zip(_SOURCES, _WIDTHS, _OPACITIES, strict=True)
        )
    ).properties(width=theme.WIDTH - 110, height=_HEIGHT)
