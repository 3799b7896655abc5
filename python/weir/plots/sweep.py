"""Curves over a swept key, one panel per measure, with the 95 % interval as a band."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from weir.graphics import encode, theme
from weir.graphics.chart import Chart, Compound, Spec, channel, in_columns, inline, layered
from weir.graphics.figure import Figure
from weir.graphics.select import Case
from weir.results.metrics import Metric
from weir.results.results import Results

_COLUMNS = 2
_MARGIN = 60
_HEIGHT = 170
_LOG_FROM = 8.0
_MAX_FIGURES = 6


def curves(results: Results, cases: Sequence[Case], shown: Sequence[Metric]) -> list[Figure]:
    """One figure over the key with the most values, for each setting of the other keys."""
    key = _main_key(results, cases)
    if key is None or not shown:
        return []
    groups: dict[tuple[tuple[str, str], ...], list[Case]] = {}
    for case in cases:
        others = tuple((k, v) for k, v in case.point.items() if k != key)
        groups.setdefault(others, []).append(case)
    return [
        _figure(results, shown, _Group(key, others, members, number))
        for number, (others, members) in enumerate(list(groups.items())[:_MAX_FIGURES], start=1)
    ]


@dataclass(frozen=True, slots=True)
class _Group:
    """The cases of a figure: the key of its axis, and what the others have in common."""

    key: str
    others: tuple[tuple[str, str], ...]
    cases: Sequence[Case]
    number: int


def _figure(results: Results, shown: Sequence[Metric], group: _Group) -> Figure:
    key, others, cases, number = group.key, group.others, group.cases, group.number
    axis = _Axis(key, cases)
    panels, frames = [], []
    for metric in shown:
        data = encode.means(results, cases, metric).join(axis.positions(cases), on="case")
        panels.append(_panel(data, metric, axis, cases, is_first=metric is shown[0]))
        frames.append(data.with_columns(metric=pl.lit(metric.name)))
    chart = in_columns(*panels, columns=_COLUMNS, spacing={"row": 20, "column": 30})
    chart = chart.resolve_scale(color="independent")
    where = ", ".join(f"{theme.short_key(k)} {v}" for k, v in others)
    title = f"Over {theme.short_key(key)}" + (f", at {where}" if where else "")
    caption = _caption(theme.short_key(key), len({case.series for case in cases}))
    name = "sweep" if number == 1 else f"sweep-{number}"
    return Figure(name, title, caption, chart, pl.concat(frames), encode.all_runs(cases))


class _Axis:
    """The swept key as an axis: numbers where all values are quantities, else names in order."""

    def __init__(self, key: str, cases: Sequence[Case]) -> None:
        self.key = key
        self.values = list(dict.fromkeys(case.point[key] for case in cases))
        self.numbers = theme.numeric_axis(self.values)

    def positions(self, cases: Sequence[Case]) -> pl.DataFrame:
        """`case` and `at`, its place on the axis."""
        places: Sequence[float | str] = self.values if self.numbers is None else self.numbers[0]
        at = dict(zip(self.values, places, strict=True))
        rows = [(case.name, at[case.point[self.key]]) for case in cases]
        return pl.DataFrame(rows, ["case", "at"], orient="row")

    def channel(self) -> Spec:
        """The x channel, logarithmic where values span more than an order of magnitude."""
        name = theme.short_key(self.key)
        if self.numbers is None:
            return channel("at:O", title=name, sort=None, axis={"labelAngle": 0})
        numbers, unit = self.numbers
        title = f"{name}, {unit}" if unit else name
        axis = theme.number_axis(numbers)
        if _are_geometric(numbers):
            scale = {"type": "log", "nice": False, "padding": 8}
        else:
            scale = {"zero": False, "nice": False, "padding": 8}
        return channel("at:Q", title=title, axis=axis, scale=scale)


def _panel(
    data: pl.DataFrame, metric: Metric, axis: _Axis, cases: Sequence[Case], *, is_first: bool
) -> Compound:
    base = Chart(inline(data))
    x = axis.channel()
    is_alone = len({case.series for case in cases}) == 1
    has_legend = is_first and not is_alone
    legend = (
        {"title": None, "orient": "top", "symbolType": "stroke", "symbolOpacity": 1}
        if has_legend
        else None
    )
    colour = encode.colour(cases, legend)
    y = channel("value:Q", title=metric.heading, scale={"zero": False})
    tips = encode.interval("case:N")
    low = channel("lo:Q", title=metric.heading)
    dots = base.mark("point", filled=True, size=40, opacity=1)
    if axis.numbers is None:  # between names there is nothing that a line could stand for
        spread = base.mark("rule", strokeWidth=2).encode(x=x, y=low, y2="hi:Q", color=colour)
        layers = [spread]
    else:
        spread = base.mark("area", opacity=0.2).encode(x=x, y=low, y2="hi:Q", color=colour)
        layers = [spread, base.mark("line", strokeWidth=2).encode(x=x, y=y, color=colour)]
    layers.append(dots.encode(x=x, y=y, color=colour, tooltip=tips))
    return layered(*layers).properties(width=theme.WIDTH // _COLUMNS - _MARGIN, height=_HEIGHT)


def _main_key(results: Results, cases: Sequence[Case]) -> str | None:
    """The key along the axis: rather one of numbers, then the one with the most values."""
    ranks = {}
    for key in results.swept:
        values = list(dict.fromkeys(case.point[key] for case in cases if key in case.point))
        if len(values) > 1 and all(key in case.point for case in cases):
            ranks[key] = (theme.numeric_axis(values) is not None, len(values))
    return max(ranks, key=ranks.__getitem__, default=None)


def _caption(key: str, series: int) -> str:
    if series == 1:
        text = f"The mean over {key} with its 95 % interval"
    else:
        text = (
            f"Each stack over {key} with its 95 % interval: where lines cross, the better stack "
            "changes, and where intervals overlap, the paired differences decide"
        )
    return f"{text}. Vertical axes need not begin at zero."


def _are_geometric(numbers: Sequence[float]) -> bool:
    """Whether the values cover a wide range in steps that are not equal."""
    ordered = sorted(set(numbers))
    steps = [high - low for low, high in itertools.pairwise(ordered)]
    is_wide = ordered[0] > 0 and ordered[-1] / ordered[0] >= _LOG_FROM
    return is_wide and max(steps) > 1.01 * min(steps)
