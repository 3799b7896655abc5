"""How delays are distributed: the share of them that stays below x, one curve per case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from weir.graphics import encode, theme
from weir.graphics.chart import Chart, channel, inline
from weir.graphics.figure import Figure
from weir.graphics.select import Case, bottlenecks, has_rows
from weir.results.results import Results

_QUANTILES = 200
_HEIGHT = 220
_LEGEND_WIDTH = 75
_LOG_FROM = 20.0


def waiting(results: Results, cases: Sequence[Case]) -> Figure | None:
    """The share of time that the queueing delay stayed below x."""
    if not has_rows(results, "queues", ("run", "link", "t_s", "queue_delay_ms")):
        return None
    monitored = bottlenecks(results).lazy().select("run", "link")
    rows = results.scan("queues").join(monitored, on=["run", "link"])
    data = _curves(rows, "queue_delay_ms", cases)
    caption = (
        "Further left is less delay; a curve ends at the longest delay. Samples at regular times, "
        "all repeats together, start-up included."
    )
    titles = {"x": "queueing delay at the bottleneck, ms", "y": "share of time below it"}
    return _figure("delay-distribution", "How long packets waited", caption, data, titles, cases)


def answers(results: Results, cases: Sequence[Case]) -> Figure | None:
    """The share of requests that were answered within x."""
    if not has_rows(results, "requests", ("run", "latency_ms")):
        return None
    data = _curves(results.scan("requests"), "latency_ms", cases)
    caption = "Further left is faster. All requests of all repeats together."
    titles = {"x": "from request to complete answer, ms", "y": "share of requests within it"}
    return _figure("latency", "How long requests took", caption, data, titles, cases)


def _figure(
    name: str,
    title: str,
    caption: str,
    data: pl.DataFrame,
    titles: Mapping[str, str],
    cases: Sequence[Case],
) -> Figure | None:
    if data.is_empty():
        return None
    low, high = data["delay_ms"].min(), data["delay_ms"].max()
    is_wide = isinstance(low, float) and isinstance(high, float) and 0 < low < high / _LOG_FROM
    scale = {"type": "log"} if is_wide else {"zero": True}
    line = Chart(inline(data)).mark("line", strokeWidth=2)
    chart = line.encode(
        x=channel("delay_ms:Q", title=titles["x"], scale=scale),
        y=channel("share:Q", title=titles["y"], axis={"format": "%"}),
        color=encode.colour(cases, {"title": None, "orient": "right"}),
        detail="case:N",
    ).properties(width=theme.WIDTH - _LEGEND_WIDTH, height=_HEIGHT)
    return Figure(name, title, caption, chart, data, encode.all_runs(cases))


def _curves(rows: pl.LazyFrame, column: str, cases: Sequence[Case]) -> pl.DataFrame:
    """`case`, `series`, `delay_ms` and `share` at evenly spaced shares."""
    shares = [rank / _QUANTILES for rank in range(_QUANTILES + 1)]
    schema = {"case": pl.String, "series": pl.String, "delay_ms": pl.Float64, "share": pl.Float64}
    frames = [pl.DataFrame(schema=schema)]
    for case in cases:
        own = rows.filter(pl.col("run").is_in(list(case.runs))).select(column).collect()
        values = own[column].fill_nan(None).drop_nulls().sort()
        if not values.is_empty():
            levels = [values[round(share * (values.len() - 1))] for share in shares]
            curve = {"case": case.name, "series": case.series, "delay_ms": levels, "share": shares}
            frames.append(pl.DataFrame(curve, schema))
    return pl.concat(frames)
