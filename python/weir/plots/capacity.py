"""The capacity of the bottleneck as a dashed line, with its steps where the scenario has any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from weir import _native
from weir.graphics import theme
from weir.graphics.chart import Chart, Spec, inline


def capacity_line(
    scenario: Mapping[str, Any], mean: float | None, time: Spec, end_s: float
) -> list[Chart]:
    """The line up to `end_s`, and its name; nothing where the capacity is infinite."""
    if mean is None:
        return []
    steps, text = capacity_steps(scenario, mean)
    last = steps[-1][1]
    path = pl.DataFrame([*steps, (end_s, last)], ["t_s", "level"], orient="row")
    dashes = Chart(inline(path)).mark(
        "line",
        color=theme.INK,
        strokeDash=[5, 3],
        strokeWidth=1,
        interpolate="step-after",
        clip=True,
    )
    end = Chart(inline(pl.DataFrame({"level": [last], "text": [text]}))).encode(
        y="level:Q", x={"value": theme.WIDTH}, text="text:N"
    )
    halo = end.mark(
        "text", align="right", baseline="bottom", dy=-3, fontSize=10, stroke="white", strokeWidth=3
    )
    label = end.mark("text", align="right", baseline="bottom", dy=-3, fontSize=10, color=theme.SOFT)
    return [dashes.encode(x=time, y="level:Q"), halo, label]


def capacity_steps(
    scenario: Mapping[str, Any], mean: float
) -> tuple[list[tuple[float, float]], str]:
    """When the capacity changes and to what in Mbit/s, the first at the start, and its name."""
    steps = _steps(scenario, mean)
    is_constant = len(steps) == 1 and not _forward(scenario).get("rate_trace")
    name = "capacity" if is_constant or len(steps) > 1 else "mean capacity"
    return steps, f"{name} {theme.significant(mean)} Mbit/s" if len(steps) == 1 else name


def _steps(scenario: Mapping[str, Any], mean: float) -> list[tuple[float, float]]:
    """When the capacity changes, and to what in Mbit/s; the first entry is at the start."""
    changes = _forward(scenario).get("rate_steps") or []
    first = _forward(scenario).get("rate") or scenario["topology"].get("rate")
    if not changes or not isinstance(first, str):
        return [(0.0, mean)]
    start = (0.0, _mbps(first))
    return [start, *((_native.parse_quantity("time", c["at"]), _mbps(c["rate"])) for c in changes)]


def _forward(scenario: Mapping[str, Any]) -> Mapping[str, Any]:
    return scenario.get("topology", {}).get("forward") or {}


def _mbps(rate: str) -> float:
    return _native.parse_quantity("rate", rate) / 1e6
