"""The channels that several figures share: rows of cases, time, colours, measured values."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weir.graphics import names, theme
from weir.graphics.chart import Shown, Spec, channel
from weir.graphics.select import Case
from weir.results.metrics import Metric
from weir.results.results import Results

ROW_HEIGHT = 24
"""Of a row whose name has one line."""


def time(end_s: float | None, *, is_last: bool) -> Spec:
    """The axis of time of panels below each other; the last of them has the numbers.

    It ends at `end_s`, or, where that is None, at the last value.
    """
    axis = (
        {"grid": False, "title": "time, s", "tickCount": 12}
        if is_last
        else {"grid": False, "title": None, "labels": False, "ticks": False}
    )
    scale: Spec = {"nice": False}
    if end_s is not None:
        scale["domain"] = [0, end_s]
    return channel("t_s:Q", axis=axis, scale=scale)


def rows(cases: Sequence[Case]) -> Spec:
    """One row per case, in the order of the command."""
    axis = {"title": None, "ticks": False, "domain": False, "labelColor": theme.INK}
    return channel("case:N", sort=[case.name for case in cases], axis=axis)


def rows_height(cases: Sequence[Case]) -> int:
    """The height of a row per case."""
    return len(cases) * names.row_height([case.name for case in cases], ROW_HEIGHT)


def colour(cases: Sequence[Case], legend: Spec | None = None) -> Spec:
    """Each series in its own colour, the same in every figure."""
    colours = {case.series: case.colour for case in cases}
    scale = {"domain": list(colours), "range": list(colours.values())}
    return channel("series:N", scale=scale, legend=legend)


def tapering(
    field: str,
    series: Sequence[str],
    first: float,
    last: float,
) -> Spec:
    """Thicker for the first series than for the last: lines that coincide are all seen."""
    step = (first - last) / max(len(series) - 1, 1)
    values = [first - step * position for position in range(len(series))]
    if len(values) == 1:  # Vega takes a range of one size for a range from nothing to it
        return {"value": (first + last) / 2}
    # Vega joins the legends of equal domains, and warns if one of them is hidden.
    scale = {"domain": list(reversed(series)), "range": values[::-1]}
    # Without an order Vega warns of a size for names.
    return channel(f"{field}:N", scale=scale, sort=list(series), legend=None)


def interval(*names: str) -> list[Shown]:
    """What is shown at a mean that is pointed at: `names`, and the value with its interval."""
    return [*names, channel("value:Q", format=".4~g"), "lo:Q", "hi:Q", "n:Q"]


def all_runs(cases: Sequence[Case]) -> tuple[int, ...]:
    """The runs of all cases."""
    return tuple(run for case in cases for run in case.runs)


def run_values(results: Results, cases: Sequence[Case], metric: Metric) -> pl.DataFrame:
    """One row per run: `case`, `series`, `run`, `value` as it is printed."""
    text = dict.fromkeys(("label", "case", "series"), pl.String)
    labels = pl.DataFrame([(c.label, c.name, c.series) for c in cases], text, orient="row")
    values = results.per_run.select(
        "run",
        "label",
        (pl.col(metric.name).cast(pl.Float64) * metric.scale).alias("value"),
    )
    named = values.join(labels, on="label").filter(pl.col("value").is_finite())
    return named.select("case", "series", "run", "value")


def means(results: Results, cases: Sequence[Case], metric: Metric) -> pl.DataFrame:
    """One row per case: `case`, `series`, `value`, `lo`, `hi`, `n`, as they are printed."""
    found = []
    for case in cases:
        e = results.estimate(case.label, metric.name)
        scaled = [None if v is None else v * metric.scale for v in (e.mean, e.lo, e.hi)]
        if e.mean is not None:
            found.append((case.name, case.series, *scaled, e.n))
    schema = {
        "case": pl.String,
        "series": pl.String,
        "value": pl.Float64,
        "lo": pl.Float64,
        "hi": pl.Float64,
        "n": pl.Int64,
    }
    return pl.DataFrame(found, schema, orient="row")
