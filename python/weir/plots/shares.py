"""How the time and the link were divided."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weir.graphics import encode, theme
from weir.graphics.chart import Chart, Compound, Shown, below_each_other, channel, inline, layered
from weir.graphics.figure import Figure
from weir.graphics.select import Case
from weir.results import metrics
from weir.results.results import Results
from weir.statistics.intervals import mean_interval

_LABEL_WIDTH = 150
_MAX_FLOWS = 16

_LIMITS = {
    "time_cwnd_limited_s": ("congestion window", "#0072b2"),
    "time_rwnd_limited_s": ("receiver's window", "#cc79a7"),
    "time_app_limited_s": ("application", "#b8c0c8"),
    "time_rto_s": ("waiting for a timeout", "#d55e00"),
}


def limits(results: Results, cases: Sequence[Case]) -> Figure | None:
    """What held the senders back, as shares of the time they were measured."""
    data = limited_shares(results, cases)
    if data.is_empty():
        return None
    colours = dict(_LIMITS.values())
    held_back_by = channel(
        "limit:N",
        title="held back by",
        scale={"domain": list(colours), "range": list(colours.values())},
        legend={"orient": "top", "direction": "horizontal"},
    )
    bars = Chart(inline(data)).mark("bar", height=16)
    chart = bars.encode(
        x=channel("share:Q", title="share of time", axis={"format": "%"}),
        y=encode.rows(cases),
        color=held_back_by,
        order="position:Q",
        tooltip=["case:N", "limit:N", channel("share:Q", format=".1%")],
    ).properties(width=theme.WIDTH - _LABEL_WIDTH, height=encode.rows_height(cases))
    caption = (
        "Blue is time in which the congestion window limited the sender, the rest time in which "
        "something else did. A comparison of controllers should be mostly blue."
    )
    return Figure("limits", "Where the time went", caption, chart, data, encode.all_runs(cases))


def limited_shares(results: Results, cases: Sequence[Case]) -> pl.DataFrame:
    """`case`, `limit`, `share`, `position`; empty where no time was measured."""
    rows = []
    for case in cases if set(_LIMITS) <= set(results.flows.columns) else ():
        own = results.flows.filter(pl.col("run").is_in(list(case.runs)))
        # The kernel does not tell what held its senders back.
        known = own.drop_nulls(list(_LIMITS))
        seconds = [float(known[column].fill_nan(None).sum()) for column in _LIMITS]
        total = sum(seconds)
        for position, ((name, _), part) in enumerate(zip(_LIMITS.values(), seconds, strict=True)):
            if total > 0:
                rows.append((case.name, name, part / total, position))
    schema = {"case": pl.String, "limit": pl.String, "share": pl.Float64, "position": pl.Int64}
    return pl.DataFrame(rows, schema, orient="row")


def flows(results: Results, cases: Sequence[Case]) -> Figure | None:
    """The goodput of each flow, where several share the link."""
    if not 2 <= results.flows["flow"].n_unique() <= _MAX_FLOWS:
        return None
    panels, frames = [], []
    for case in cases:
        data = _flow_means(results, case)
        chart = _flow_panel(data, case)
        height = encode.ROW_HEIGHT * data.height
        panels.append(
            chart.properties(title=case.name, width=theme.WIDTH - _LABEL_WIDTH, height=height)
        )
        frames.append(data.with_columns(case=pl.lit(case.name)))
    chart = below_each_other(*panels, spacing=12).resolve_scale(x="shared", color="independent")
    caption = (
        "Points of flows with equal shares are below each other; bars are 95 % intervals over "
        "the repeats."
    )
    runs = encode.all_runs(cases)
    return Figure("flows", "Goodput of each flow", caption, chart, pl.concat(frames), runs)


def _flow_panel(data: pl.DataFrame, case: Case) -> Compound:
    base = Chart(inline(data))
    title = "goodput, Mbit/s"
    axis = {"title": None, "ticks": False, "domain": False, "labelColor": theme.INK}
    y = channel("flow:N", sort=None, axis=axis)
    colour = theme.flow_colours(data["flow"].to_list(), data["stack"].to_list(), case.colour)
    scale = {"domain": list(colour), "range": list(colour.values())}
    shade = channel("flow:N", scale=scale, legend=None)
    tips: list[Shown] = ["flow:N", "stack:N", channel("value:Q", title=title, format=".4~g")]
    return layered(
        base.mark("rule", strokeWidth=3).encode(
            x=channel("lo:Q", title=title), x2="hi:Q", y=y, color=shade
        ),
        base.mark("point", filled=True, size=70, opacity=1).encode(
            x=channel("value:Q", title=title), y=y, color=shade, tooltip=tips
        ),
    )


def _flow_means(results: Results, case: Case) -> pl.DataFrame:
    own = metrics.per_flow(results.flows).filter(pl.col("run").is_in(list(case.runs)))
    rows = []
    by_flow = own.sort("flow").group_by("flow", "name", "stack", maintain_order=True)
    for (_, name, stack), group in by_flow:
        e = mean_interval(group["goodput_mbps"], bounds=(0.0, None))
        rows.append((str(name), str(stack), e.mean, e.lo, e.hi))
    text = dict.fromkeys(("flow", "stack"), pl.String)
    schema = {**text, **dict.fromkeys(("value", "lo", "hi"), pl.Float64)}
    return pl.DataFrame(rows, schema, orient="row")
