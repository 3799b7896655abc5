"""Frames on the air: a row per node, a bar per frame with its name and length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from weir.graphics import theme
from weir.graphics.chart import Chart, channel, inline, layered
from weir.graphics.figure import Figure

_ROW = 46
_NAMES: Mapping[str, str] = {"rts": "RTS", "cts": "CTS", "ack": "ACK"}
"""Other kinds are called by their names."""


def on_air(
    name: str, title: str, caption: str, frames: pl.DataFrame, runs: Sequence[int] = ()
) -> Figure:
    """Some rows of table `frames`, over the time since the first of them began."""
    begin = pl.col("t_s").min()
    data = frames.select(
        (pl.lit("node ") + pl.col("node").cast(pl.String)).alias("node"),
        pl.col("kind").replace(dict(_NAMES)).alias("kind"),
        ((pl.col("t_s") - begin) * 1e3).alias("from_ms"),
        ((pl.col("end_s") - begin) * 1e3).alias("to_ms"),
        ((pl.col("end_s") - pl.col("t_s")) * 1e6).round(3).alias("length_us"),
    )
    colours = theme.stack_colours([*_NAMES.values(), "data"])
    chart = Chart(inline(data))
    y = channel("node:N", title=None, scale={"paddingInner": 0.5})
    x = channel("from_ms:Q", title="time, ms", scale={"nice": False})
    scale = {"domain": list(colours), "range": list(colours.values())}
    legend = {"title": None, "orient": "top", "symbolType": "square"}
    bars = chart.mark("bar", stroke="white").encode(
        y=y,
        x=x,
        x2="to_ms:Q",
        color=channel("kind:N", scale=scale, legend=legend),
        tooltip=["node:N", "kind:N", "length_us:Q", "from_ms:Q", "to_ms:Q"],
    )
    lengths = chart.mark("text", align="left", dy=-_ROW / 2 + 4, fontSize=10, color=theme.SOFT)
    text = lengths.encode(y=y, x=x, text=channel("length_us:Q", format=","))
    height = _ROW * data["node"].n_unique()
    drawn = layered(bars, text).properties(width=theme.WIDTH - 60, height=height)
    return Figure(name, title, caption, drawn, data, tuple(runs))
