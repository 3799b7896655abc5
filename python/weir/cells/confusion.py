"""A confusion matrix: what is true, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from weir.cells.protocol import Cell
from weir.graphics.chart import Chart, channel, inline, layered
from weir.plots import Figure

_STEP = 22


@dataclass(frozen=True)
class Captions:
    """The texts of a matrix."""

    name: str
    """The name of its file."""
    title: str
    true: str
    found: str
    share: str
    caption: str


def matrix(cells: Sequence[Cell], words: Captions, runs: tuple[int, ...]) -> Figure:
    """A square per truth (row) and name found (column), with the share of the row."""
    rows = [
        {"true": one["row"], "found": one["column"], "share": one["ours"]["mean"]} for one in cells
    ]
    # As data, because a dark page has other colours for black and white in a chart.
    ink = pl.when(pl.col("share") > 60).then(pl.lit("#ffffff")).otherwise(pl.lit("#000000"))
    frame = pl.DataFrame(rows).with_columns(ink=ink)
    order = list(dict.fromkeys(frame["true"]))
    names = list(dict.fromkeys(frame["found"]))
    # Each name stands below the first truth that it contains, `unknown` last.
    names.sort(key=lambda name: next((order.index(n) for n in name.split(", ") if n in order), 99))
    base = Chart(inline(frame)).encode(
        x=channel(
            "found:N",
            sort=names,
            title=words.found,
            axis={"labelAngle": -60, "labelOverlap": False},
        ),
        y=channel("true:N", sort=order, title=words.true),
    )
    squares = base.mark("rect").encode(
        color=channel(
            "share:Q",
            title=words.share,
            scale={"domain": [0, 100], "scheme": "blues"},
        )
    )
    texts = base.mark("text", fontSize=10).encode(
        text=channel("share:Q", format=".0f"),
        fill=channel("ink:N", scale=None),
    )
    chart = layered(squares, texts).properties(
        width=_STEP * len(names) * 1.3, height=_STEP * len(order)
    )
    return Figure(words.name, words.title, words.caption, chart, frame, runs)
