"""What a link could carry and when, what was used of it, and how long a step takes to follow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import polars as pl

from weir.cells.protocol import Cell
from weir.dynamics.curves import Curve, curves
from weir.dynamics.responses import step_response
from weir.experiments.joins import wait_cell
from weir.results.results import Results
from weir.statistics.intervals import Estimate, mean_interval

_PAYLOAD = 1448 / 1500
"""Application bytes per byte of a full packet."""

_FIRST_S = 2.0
"""The start of each run, left out of what is used: it is not about steps."""

_BIN_S = 0.5
_HOLD_S = 2.0
_TOLERANCE = 0.15
"""Settled is within this of the new rate for `_HOLD_S`: Reno's own sawtooth stays within it over a
buffer of one bandwidth-delay product and more."""

_SAMPLE_S = 0.1
_SLICE_S = 0.5

Link = Mapping[str, Any]
"""One of the description's links; `changes` are time in s, rate in Mbit/s, event."""


def rate_steps(link: Link) -> str:
    """What changes, as in a scenario; empty if the rate never does."""
    steps = [
        f'{{ at = "{at:g}s", rate = "{rate:g}mbit" }}'
        for (_, before, _), (at, rate, _) in itertools.pairwise(link["changes"])
        if rate != before
    ]
    return f"[{', '.join(steps)}]" if steps else ""


def phases(link: Link) -> Iterator[tuple[float, float, str, float]]:
    """Every change with the end of what it begins."""
    ends = [*(at for at, *_ in link["changes"][1:]), link["seconds"]]
    return ((*change, end) for change, end in zip(link["changes"], ends, strict=True))


def used(results: Results, link: Link, label: str) -> Estimate:
    """The part of the capacity that was delivered, headers and the start left out."""
    capacity = _PAYLOAD * sum(
        rate * max(0.0, end - max(_FIRST_S, at)) for at, rate, _, end in phases(link)
    )
    parts = [
        float(flow.delivered(flow.seen_s) - flow.delivered(_FIRST_S)) / capacity
        for flow in _curves(results, label)
    ]
    return mean_interval(parts, (0.0, 1.0))


def settled(results: Results, link: Link, stack: str, label: str) -> Iterator[Cell]:
    """A cell for each change that is asked about."""
    for at, rate, event, end in phases(link):
        if event:
            waits = [
                step_response(
                    flow,
                    at,
                    min(end, flow.seen_s),
                    before_mbps=0.0,  # what counts is the new rate, not how large the step was
                    after_mbps=_PAYLOAD * rate,
                    tolerance=_TOLERANCE,
                    bin_s=_BIN_S,
                    hold_s=_HOLD_S,
                ).settling
                for flow in _curves(results, label)
            ]
            place = "time to settle", stack, f"{link['name']}: {event}"
            yield wait_cell(place, waits, "settled")


@lru_cache(maxsize=8)
def _curves(results: Results, label: str) -> list[Curve]:
    """The flow of every repeat."""
    runs = results.runs.filter(label=label, status="ok")["run"].implode()
    samples = results.scan("samples").filter(pl.col("run").is_in(runs)).collect()
    flows = results.flows.filter(pl.col("run").is_in(runs))
    return [flow for own in curves(samples, flows).values() for flow in own]


def over_time(results: Results, link: Link, table: str, column: str) -> pl.DataFrame:
    """`series` (the control), `t_s` and `value`, mean over the repeats and over each slice."""
    is_own = pl.col("label").str.starts_with(f"{link['name']},")
    runs = results.runs.filter(is_own, pl.col("status") == "ok").select(
        "run", series=pl.col("label").str.split(", ").list.last()
    )
    slices = ((pl.col("t_s") - _SAMPLE_S / 2) / _SLICE_S).floor() * _SLICE_S + _SLICE_S / 2
    rows = results.scan(table).join(runs.lazy(), on="run").sort("run")
    means = rows.group_by("series", t_s=slices, maintain_order=True).agg(
        value=pl.col(column).mean()
    )
    return means.collect().select("series", "t_s", "value")


def with_capacity(goodput: pl.DataFrame, link: Link) -> pl.DataFrame:
    """Goodputs with what the link could carry: two points per phase, a staircase."""
    rows = [
        ("the link", time, _PAYLOAD * rate)
        for at, rate, _, end in phases(link)
        for time in (float(at), float(end))
    ]
    return pl.concat([goodput, pl.DataFrame(rows, goodput.schema, orient="row")])
