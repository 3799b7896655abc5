"""Pictures of `weir explain` and `weir search`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from weir.base.errors import InputError
from weir.graphics.dots import DotAxes, dots
from weir.graphics.figure import Figure
from weir.graphics.timeline import TimePanel, timeline
from weir.results.results import INTERNAL
from weir.search.explain import Explained

_PANELS = (
    ("goodput_mbps", "Goodput", "Mbit/s", 1.0),
    ("cwnd_bytes", "Congestion window", "kB", 1e-3),
    ("bytes_in_flight", "In flight", "kB", 1e-3),
    ("rtt_ms", "RTT", "ms", 1.0),
    ("pacing_mbps", "Pacing rate", "Mbit/s", 1.0),
)
_MOST_INTERNAL = 3


def drawn(folder: Path, picture: Callable[[], Figure]) -> str:
    """Draws a picture next to a journal; returns what is said about it."""
    try:
        (file,) = picture().save(folder, ["svg"])
    except InputError as missing:
        return f"no picture: {missing}"
    return f"Picture: {file}"


def residuals(found: Explained) -> Figure:
    """How far each cell is from the published number, and over all settings that fit as well."""
    rows = [
        {
            "panel": "",
            "row": f"{number + 1}. {found.table.name(cell)}",
            "group": "held out" if cell.is_held_out else "searched",
            "value": z,
            "lo": found.ranges[cell][0],
            "hi": found.ranges[cell][1],
        }
        for number, (cell, z) in enumerate(found.residuals.items())
    ]
    caption = (
        "A dot is the best setting, its line all settings that are not worse. A cell within two "
        "errors of 0 agrees. Cells held out had no part in the search."
    )
    axes = DotAxes("measured − published, in errors", 0.0)
    return dots("residuals", "Residuals of the published cells", caption, pl.DataFrame(rows), axes)


def moment(samples: pl.DataFrame, at_s: float, width_s: float) -> Figure:
    """The flows around the decisive moment: rates, windows, and the controllers' own variables."""
    samples = samples.filter(pl.col("t_s").is_between(at_s - width_s, at_s + width_s))
    own = [
        (name, name.removeprefix(INTERNAL), "", 1.0)
        for name in samples.columns
        if name.startswith(INTERNAL) and samples[name].dtype.is_numeric()
    ]
    panels = []
    for column, title, unit, scale in (*_PANELS, *own[:_MOST_INTERNAL]):
        if column not in samples.columns:
            continue
        data = samples.select(
            pl.col("name").cast(pl.String).alias("series"),
            "t_s",
            (pl.col(column).cast(pl.Float64) * scale).alias("value"),
        ).drop_nulls("value")
        if not data.is_empty():
            panels.append(TimePanel(title, unit, data))
    caption = (
        f"The seconds around {at_s:.2f} s, from where the flow that gets least no longer has half "
        "of its share."
    )
    moments = [(at_s, "decisive")]
    return timeline("moment", "The decisive seconds", caption, panels, moments)
