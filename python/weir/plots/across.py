"""The cases side by side: each measure with its interval, and goodput against delay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import polars as pl

from weir.graphics import encode, names, theme
from weir.graphics.chart import Chart, Compound, Shown, Spec, channel, in_columns, inline, layered
from weir.graphics.figure import Figure
from weir.graphics.select import Case
from weir.results import metrics
from weir.results.metrics import Metric
from weir.results.results import Results

_FEWEST = 2
_COLUMNS = 2
_GUTTER = 45
_LOG_FROM = 20.0
_HEIGHT = 320
_MARGIN = 0.15
_WIDEST_LABELS = 230
"""Longer names make the picture wider, in pixels."""
_LETTER, _LINE, _GAP = 7, 14, 10
"""Rough width of a letter, height of a line and distance from its dot, in pixels."""
_BETTER = {"more": "   (better →)", "less": "   (← better)", "neither": ""}


def intervals(results: Results, cases: Sequence[Case], shown: Sequence[Metric]) -> Figure | None:
    """Each metric of every case, with its interval and each run as a point."""
    if not shown or len(cases) < _FEWEST:
        return None
    frames = [encode.means(results, cases, metric) for metric in shown]
    panels = [
        _dots(encode.run_values(results, cases, metric), frame, cases, metric)
        for metric, frame in zip(shown, frames, strict=True)
    ]
    data = pl.concat(
        frame.with_columns(metric=pl.lit(metric.name))
        for metric, frame in zip(shown, frames, strict=True)
    )
    columns = min(_COLUMNS, len(panels))
    chart = in_columns(*panels, columns=columns, spacing={"row": 18, "column": 30})
    caption = (
        "Dots and bars are means with 95 % intervals over the repeats, small points single runs. "
        "Stacks whose bars do not overlap differ; where they overlap, the paired differences "
        "decide. Axes need not begin at zero."
    )
    return Figure("metrics", "Each measure, by stack", caption, chart, data, encode.all_runs(cases))


def goodput_against_delay(results: Results, cases: Sequence[Case]) -> Figure | None:
    """The scatter that Pantheon made known: good is up and to the right."""
    names = [metric.name for metric in results.measured()]
    delay = next((n for n in ("queue_delay_ms_p95", "queue_delay_ms_mean") if n in names), None)
    if delay is None or "goodput_mbps" not in names or len(cases) < _FEWEST:
        return None
    x, y = metrics.BY_NAME[delay], metrics.BY_NAME["goodput_mbps"]
    keys = ["case", "series"]
    points = encode.run_values(results, cases, x).join(
        encode.run_values(results, cases, y), on=[*keys, "run"], suffix="_y"
    )
    centres = encode.means(results, cases, x).join(
        encode.means(results, cases, y), on=keys, suffix="_y"
    )
    plane = _Plane(points, centres)
    inside = centres.with_columns(pl.col("lo", "hi").clip(*plane.x))
    chart = layered(
        _cloud(points, cases, plane, x, y),
        *_crosses(inside, cases, x, y),
        *_names(centres, cases, plane),
    ).properties(width=theme.WIDTH, height=_HEIGHT)
    caption = (
        "Up is more goodput and right is less delay, so the upper right corner is best; large dots "
        "with crosses are means with their 95 % intervals, small dots single runs."
    )
    runs = tuple(points["run"].to_list())
    return Figure("goodput-delay", "Goodput against delay", caption, chart, centres, runs)


class _Plane:
    """The scales of the scatter, known here so that labels can be kept apart."""

    def __init__(self, points: pl.DataFrame, centres: pl.DataFrame) -> None:
        self.is_log = False
        self.x = _domain(points["value"], centres["lo"], centres["hi"])
        self.y = _domain(points["value_y"], centres["lo_y"], centres["hi_y"])
        low, high = points["value"].min(), points["value"].max()
        if isinstance(low, float) and isinstance(high, float) and 0 < low < high / _LOG_FROM:
            self.is_log = True
            self.x = (low / 1.5, high * 1.5)

    def scale_x(self) -> Spec:
        """Delay, reversed so that better is to the right; logarithmic over a wide range."""
        kind: Literal["log", "linear"] = "log" if self.is_log else "linear"
        return {"type": kind, "domain": list(self.x), "reverse": True, "nice": False}

    def scale_y(self) -> Spec:
        """Goodput."""
        return {"domain": list(self.y), "nice": False}

    def pixel(self, x: float, y: float) -> tuple[float, float]:
        """Where a point is, in pixels from the upper left corner."""
        low, high = self.x
        share = (
            math.log(high / x) / math.log(high / low) if self.is_log else (high - x) / (high - low)
        )
        return share * theme.WIDTH, (self.y[1] - y) / (self.y[1] - self.y[0]) * _HEIGHT


def _domain(*columns: pl.Series) -> tuple[float, float]:
    values = [float(value) for column in columns for value in column.drop_nulls()]
    low, high = min(values, default=0.0), max(values, default=0.0)
    margin = _MARGIN * (high - low) or abs(high) * _MARGIN or 1.0
    return max(low - margin, 0.0), high + margin


def _cloud(
    points: pl.DataFrame, cases: Sequence[Case], plane: _Plane, x: Metric, y: Metric
) -> Chart:
    delay = channel("value:Q", title=f"{x.heading}   (better →)", scale=plane.scale_x())
    goodput = channel("value_y:Q", title=f"{y.heading}   (better ↑)", scale=plane.scale_y())
    dots = Chart(inline(points)).mark("circle", size=24, opacity=0.4)
    tips: list[Shown] = ["case:N", "run:Q", _tip("value", x), _tip("value_y", y)]
    cloud: Chart = dots.encode(x=delay, y=goodput, color=encode.colour(cases), tooltip=tips)
    return cloud


def _crosses(centres: pl.DataFrame, cases: Sequence[Case], x: Metric, y: Metric) -> list[Chart]:
    base = Chart(inline(centres))
    at_x, at_y, colour = channel("value:Q"), channel("value_y:Q"), encode.colour(cases)
    bar = base.mark("rule", strokeWidth=2)
    dot = base.mark("point", filled=True, size=90, opacity=1)
    tips: list[Shown] = ["case:N", _tip("value", x), _tip("value_y", y)]
    return [
        bar.encode(x="lo:Q", x2="hi:Q", y=at_y, color=colour),
        bar.encode(x=at_x, y="lo_y:Q", y2="hi_y:Q", color=colour),
        dot.encode(x=at_x, y=at_y, color=colour, tooltip=tips),
    ]


def _names(centres: pl.DataFrame, cases: Sequence[Case], plane: _Plane) -> list[Chart]:
    """A name next to each mean, moved down past the names that are there already."""
    colours = {case.name: case.colour for case in cases}
    taken: list[tuple[float, float, float, float]] = []
    layers = []
    for row in centres.sort("value_y", descending=True).iter_rows(named=True):
        left, top = plane.pixel(row["value"], row["value_y"])
        text = names.lines(row["case"])
        width = _LETTER * max(map(len, text))
        is_right = left + width + _GAP < theme.WIDTH
        start = left + _GAP if is_right else left - _GAP - width
        shift = -_GAP
        while any(
            start < end
            and begin < start + width
            and first - _LINE * len(text) < top + shift < first + height
            for begin, end, first, height in taken
        ):
            shift += 2
        taken.append((start, start + width, top + shift, _LINE * len(text)))
        mark = Chart(inline(pl.DataFrame([{**row, "case": "\n".join(text)}]))).mark(
            "text",
            align="left" if is_right else "right",
            baseline="middle",
            lineBreak="\n",
            dx=_GAP if is_right else -_GAP,
            dy=shift,
            fontWeight=600,
            color=theme.darker(colours[row["case"]]),
        )
        layers.append(mark.encode(x="value:Q", y="value_y:Q", text="case:N"))
    return layers


def _dots(
    points: pl.DataFrame, means: pl.DataFrame, cases: Sequence[Case], metric: Metric
) -> Compound:
    title = f"{metric.heading}{_BETTER[metric.better]}"
    x = channel("value:Q", title=title, scale={"zero": False, "padding": 8}, axis={"tickCount": 5})
    y, colour = encode.rows(cases), encode.colour(cases)
    mean = Chart(inline(means))
    single = Chart(inline(points)).mark("circle", size=18, opacity=0.4)
    value = _tip("value", metric)
    layers = [
        single.encode(x=x, y=y, color=colour, tooltip=["case:N", "run:Q", value]),
        mean.mark("rule", strokeWidth=3).encode(x="lo:Q", x2="hi:Q", y=y, color=colour),
        mean.mark("point", filled=True, size=70, opacity=1).encode(
            x=x, y=y, color=colour, tooltip=["case:N", value, "lo:Q", "hi:Q", "n:Q"]
        ),
    ]
    labels = min(_LETTER * names.width(case.name for case in cases), _WIDEST_LABELS)
    width = theme.WIDTH // _COLUMNS + _GUTTER - labels
    return layered(*layers).properties(width=width, height=encode.rows_height(cases))


def _tip(field: str, metric: Metric) -> Spec:
    return channel(f"{field}:Q", title=metric.heading, format=".4~g")
