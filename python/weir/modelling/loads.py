"""What controllers got on the path itself, where results have several of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from weir.results.results import Results

_OURS = "rack/"
"""The recovery of our own transport, which is left out of names."""


@dataclass(frozen=True)
class Load:
    """A controller that was measured on the path: the mean over the flows of each run."""

    stack: str
    goodputs_mbps: tuple[float, ...]
    rtts_ms_p95: tuple[float, ...]


def measured_loads(results: Results, case: Mapping[str, Any]) -> tuple[Load, ...]:
    """The loads that differ from `case` by their controller alone, with that of `case` first.

    Empty unless there is another one. A run that delivered nothing is no measurement.
    """
    alike = [one for one in results.cases if _conditions(one) == _conditions(case)]
    alike.sort(key=lambda one: one["label"] != case["label"])
    found: dict[str, Load] = {}
    for one in alike:
        name = str(one["scenario"]["flow"][0]["stack"]).removeprefix(_OURS)
        load = _load(results, one["label"], name)
        if name not in found and load.goodputs_mbps:
            found[name] = load
    return tuple(found.values()) if len(found) > 1 else ()


def _conditions(case: Mapping[str, Any]) -> object:
    """What must be the same for two loads to be compared: everything but the controller."""
    scenario = dict(case["scenario"])
    flows = scenario.pop("flow")
    test = scenario.pop("test", None) or {}
    order = {k: v for k, v in test.get("order", {}).items() if k not in ("control", "stack")}
    # Only a load whose flows all have the same controller has one name.
    is_one = len({flow["stack"] for flow in flows}) == 1
    own = [{k: v for k, v in flow.items() if k not in ("stack", "name")} for flow in flows]
    return (is_one or case["label"], own, scenario, order, case.get("world"))


def _load(results: Results, label: str, name: str) -> Load:
    runs = results.runs.filter((pl.col("label") == label) & (pl.col("status") == "ok"))["run"]
    rows = results.flows.filter(pl.col("run").is_in(runs.implode()) & (pl.col("stack") != "udp"))
    per_run = (
        rows.filter(pl.col("delivered_bytes") > 0)
        .group_by("run", maintain_order=True)
        .agg(pl.col("goodput_mbps").mean(), pl.col("rtt_ms_p95", "rtt_ms_max").mean())
    )
    delays = per_run.select(pl.coalesce("rtt_ms_p95", "rtt_ms_max")).to_series()
    return Load(name, tuple(per_run["goodput_mbps"]), tuple(delays.drop_nulls()))
