"""How much of its time NewReno spends in slow start: the slides say up to 40 %."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import polars as pl

from weir.results import Results
from weir.stats import mean_interval
from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Extent
from weir.studies.muzha.experiment import (
    NEWRENO,
    STACKS,
    WARMUP_S,
    WINDOWS,
    Radio,
    Sender,
    Watch,
    hops_name,
    hops_of,
    scenario,
)

HOPS = (4, 8, 16, 32)
TABLE = "slow start"


def label(hops: int, window: int) -> str:
    """The name of a case."""
    return f"phases, {hops} hops, window {window}"


def row(window: int) -> str:
    """A row of the table."""
    return f"window {window}"


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of this part by its label."""
    watch = Watch(extent.seconds, sample_s=0.05)
    return {
        label(hops, window): scenario(Radio(hops), [Sender(STACKS[NEWRENO], window)], extent, watch)
        for hops, window in itertools.product(hops_of(extent, HOPS), WINDOWS)
    }


def cells(results: Results, extent: Extent) -> Iterator[Cell]:
    """The share of the samples, 20 a second, in which its window was below the threshold."""
    runs = results.runs.filter(pl.col("label").str.starts_with("phases,"), status="ok")
    samples = (
        results.scan("samples")
        .filter(pl.col("t_s") >= WARMUP_S)
        .group_by("run")
        .agg((pl.col("phase") == "slow_start").mean().alias("share"))
        .collect()
        .join(runs.select("run", "label"), on="run")
    )
    for window, hops in itertools.product(WINDOWS, hops_of(extent, HOPS)):
        shares = samples.filter(label=label(hops, window)).sort("run")["share"]
        yield cell(TABLE, row(window), hops_name(hops), "share", mean_interval(shares, (0.0, 1.0)))
