"""Which rows of a result directory a figure shows, thinned out until they fit a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from weir.graphics.theme import short_key, stack_colours
from weir.results.results import Results

MAX_PANELS = 6
"""More cases than this are not drawn over time one by one."""

_LINE_POINTS = 500
_BAND_BINS = 160
MEAN_SLICES = 240

FABRICS = ("leaf-spine", "fat-tree")
"""Topologies without a bottleneck."""


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario with its successful runs, and the one of them that stands for the others."""

    label: str
    name: str
    """The label with its swept keys shortened, for people."""
    series: str
    """The name without the point of the sweep: what a colour stands for."""
    colour: str
    point: dict[str, str]
    runs: tuple[int, ...]
    typical: int
    """The run whose goodput is the median."""
    scenario: Mapping[str, Any]

    @property
    def is_fabric(self) -> bool:
        """Whether it ran on hosts and switches that a scenario asks for together."""
        return self.scenario.get("topology", {}).get("kind") in FABRICS

    @property
    def is_uniform(self) -> bool:
        """Whether its connections have ends of their own: no link is meant as the bottleneck."""
        flows = self.scenario.get("flow", ())
        is_graph = self.scenario.get("topology", {}).get("kind") == "graph"
        return self.is_fabric or (is_graph and any(_has_own_ends(flow) for flow in flows))

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks of its flows, each once."""
        return tuple(dict.fromkeys(str(flow["stack"]) for flow in self.scenario.get("flow", ())))


def _has_own_ends(flow: Mapping[str, Any]) -> bool:
    """Whether the connections of a flow of a graph run between hosts that are drawn or listed."""
    is_listed = flow.get("workload", {}).get("kind") == "connections"
    return is_listed or "*" in (flow.get("from"), flow.get("to"))


def cases(results: Results) -> list[Case]:
    """The cases that have at least one successful run, in the order of the command."""
    per_run = results.per_run.select("run", "label", "goodput_mbps")
    names = {case["label"]: case["series"] for case in results.cases}
    colours = stack_colours(names.values())
    found = []
    for case in results.cases:
        label = case["label"]
        own = per_run.filter(pl.col("label") == label).sort("goodput_mbps", nulls_last=True)
        if own.is_empty():
            continue
        runs = own["run"].to_list()
        typical = runs[(len(runs) - 1) // 2]
        own_series, point = names[label], dict(case["point"])
        name = ", ".join([own_series, *(f"{short_key(k)} {v}" for k, v in point.items())])
        colour = colours[own_series]
        found.append(
            Case(
                label,
                name,
                own_series,
                colour,
                point,
                tuple(sorted(runs)),
                typical,
                case["scenario"],
            )
        )
    return found


def shown_over_time(found: Sequence[Case]) -> list[Case]:
    """The cases that get a panel of their own: all, or those at the middle of the sweep."""
    if len(found) <= MAX_PANELS:
        return list(found)
    points = list(dict.fromkeys(tuple(case.point.items()) for case in found))
    middle = points[(len(points) - 1) // 2]
    return [case for case in found if tuple(case.point.items()) == middle][:MAX_PANELS]


def has_rows(results: Results, table: str, columns: Sequence[str]) -> bool:
    """Whether a table exists with these columns and has any row."""
    try:
        frame = results.scan(table)
        present = set(frame.collect_schema().names())
    except (FileNotFoundError, pl.exceptions.PolarsError):
        return False
    return present.issuperset(columns) and not frame.head(1).collect().is_empty()


def bottlenecks(results: Results) -> pl.DataFrame:
    """The first monitored link of each run: `run`, `link`, `capacity_mbps`."""
    columns = ("run", "link", "capacity_mbps")
    if not has_rows(results, "links", (*columns, "monitored")):
        return pl.DataFrame(schema=dict(zip(columns, (pl.UInt32, pl.UInt32, float), strict=True)))
    ordered = results.links.sort("run", "monitored", "link", descending=[False, True, False])
    return ordered.group_by("run", maintain_order=True).first().select(columns)


def averaged(rows: pl.DataFrame, value: str, by: Sequence[str] = ()) -> pl.DataFrame:
    """`rows` with the mean of `value` per slice of time, for rates, whose peaks mean little."""
    if rows.is_empty():
        return rows
    first, last = _span(rows)
    width = (last - first) / MEAN_SLICES
    middle = (((pl.col("t_s") - first) / width).floor() + 0.5) * width + first
    return (
        rows.group_by(*by, middle.clip(first, last).alias("t_s"))
        .agg(pl.col(value).mean())
        .sort(*by, "t_s")
    )


def line(rows: pl.DataFrame, value: str, by: Sequence[str] = ()) -> pl.DataFrame:
    """`rows` over `t_s` with at most about 500 points per line, every peak and dip kept.

    Each of 250 slices of time keeps its smallest and its largest value of `value`.
    """
    keys = list(by)
    slices = _LINE_POINTS // 2
    if rows.height <= _LINE_POINTS:
        return rows.sort(*keys, "t_s")
    first, last = _span(rows)
    sliced = rows.with_columns(
        ((pl.col("t_s") - first) / (last - first) * slices).floor().alias("_slice")
    )
    ends = [
        sliced.filter(pl.col(value).is_not_null())
        .sort(value, descending=descending)
        .group_by(*keys, "_slice", maintain_order=True)
        .first()
        .select(rows.columns)
        for descending in (False, True)
    ]
    return pl.concat(ends).unique().sort(*keys, "t_s")


def band(rows: pl.DataFrame, value: str) -> pl.DataFrame:
    """The smallest and the largest value over all runs, per slice of time: `t_s`, `lo`, `hi`."""
    empty = pl.DataFrame(schema={"t_s": pl.Float64, "lo": pl.Float64, "hi": pl.Float64})
    present = rows.filter(pl.col(value).is_not_null())
    if present.is_empty():
        return empty
    first, last = _span(present)
    width = (last - first) / _BAND_BINS
    middle = ((pl.col("t_s") - first) / width).floor() * width + first + width / 2
    return (
        present.group_by(middle.clip(first, last).alias("t_s"))
        .agg(pl.col(value).min().alias("lo"), pl.col(value).max().alias("hi"))
        .cast({"lo": pl.Float64, "hi": pl.Float64})
        .sort("t_s")
    )


def _span(rows: pl.DataFrame) -> tuple[float, float]:
    times = rows["t_s"]
    first, last = float(times.min() or 0.0), float(times.max() or 0.0)  # type: ignore[arg-type]
    return first, last if last > first else first + 1.0
