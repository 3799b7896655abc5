"""The picture of study `identify`: the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from weir.plots import Figure
from weir.plots.figure import inline, layered
from weir.studies import Cell

_STEP = 22


def matrix(cells: Sequence[Cell], runs: tuple[int, ...]) -> Figure:
    """A square per true controller and name found, with the share of that controller's captures."""
    rows = [
        {"true": one["row"], "found": one["column"], "share": one["ours"]["mean"]} for one in cells
    ]
    # As data, because a dark page has other colours for black and white in a chart.
    ink = pl.when(pl.col("share") > 60).then(pl.lit("#ffffff")).otherwise(pl.lit("#000000"))
    frame = pl.DataFrame(rows).with_columns(ink=ink)
    order = list(dict.fromkeys(frame["true"]))
    names = list(dict.fromkeys(frame["found"]))
    # Each name stands below the first controller that it contains, `unknown` last.
    names.sort(key=lambda name: next((order.index(n) for n in name.split(", ") if n in order), 99))
    base = alt.Chart(inline(frame)).encode(
        x=alt.X(
            "found:N",
            sort=names,
            title="name found",
            axis=alt.Axis(labelAngle=-60, labelOverlap=False),
        ),
        y=alt.Y("true:N", sort=order, title="true controller"),
    )
    squares = base.mark_rect().encode(
        color=alt.Color(
            "share:Q",
            title="captures, %",
            scale=alt.Scale(domain=[0, 100], scheme="blues"),
        )
    )
    texts = base.mark_text(fontSize=10).encode(
        text=alt.Text("share:Q", format=".0f"),
        fill=alt.Fill("ink:N", scale=None),
    )
    chart = layered(squares, texts).properties(
        width=_STEP * len(names) * 1.3, height=_STEP * len(order)
    )
    caption = (
        "Shares of the captures of each controller, in percent. Several names in one label are a "
        "class: they predict the same window."
    )
    return Figure("identify", "Names found", caption, chart, frame, runs)
