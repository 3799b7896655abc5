"""Measures of data-centre fabrics: slowdowns by size in groups of flows, and the use of uplinks.

Groups are those of HPCC's evaluation (Li et al., SIGCOMM 2019; `fct_analysis.py`): connections in
the order of their sizes, cut into equal numbers. Only connections that ended have a slowdown; with
sizes from a heavy tail those that did not are the long ones, so their share stands next to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from weir.statistics.intervals import Estimate, mean_interval
from weir.statistics.requests import Percentile, percentiles

PERCENTS = (50.0, 95.0, 99.0)
GROUPS = 20
"""Each has 5 % of the connections."""


@dataclass(frozen=True, slots=True)
class SizeGroup:
    """Connections of similar size, of all repeats together."""

    up_to_bytes: int
    """The largest of them."""
    n: int
    not_ended: int
    """Of these, how many failed or were cut off by the end of the run."""
    slowdown: Sequence[Percentile]
    """`PERCENTS` of those that ended."""


def size_groups(
    arrivals: pl.DataFrame,
    groups: int = GROUPS,
    measure: Literal["slowdown", "slowdown_hpcc"] = "slowdown",
) -> list[SizeGroup]:
    """Cuts connections, rows of table `arrivals`, into `groups` by size, smallest first.

    Groups differ by one connection at most. With fewer connections than groups, each has its own.
    `slowdown_hpcc` is the slowdown that HPCC's evaluation prints.
    """
    ordered = arrivals.sort("size_bytes", "run", "flow", "arrival")
    return list(_cut(ordered, min(groups, ordered.height), measure)) if ordered.height else []


def _cut(ordered: pl.DataFrame, groups: int, measure: str) -> Iterator[SizeGroup]:
    ends = [ordered.height * number // groups for number in range(groups + 1)]
    for first, end in itertools.pairwise(ends):
        own = ordered[first:end]
        yield SizeGroup(
            up_to_bytes=int(own["size_bytes"][-1]),
            n=own.height,
            not_ended=own[measure].null_count(),
            slowdown=percentiles(own[measure].drop_nulls(), PERCENTS),
        )


def largest_over_mean(links: pl.DataFrame, pattern: str) -> Estimate:
    """Bytes of the fullest link over the mean, of those whose name matches, over the runs.

    1 is an even use. A run in which nothing crossed them is left out.
    """
    carried = pl.col("delivered_bytes")
    found = (
        links.filter(pl.col("name").str.contains(pattern))
        .group_by("run", maintain_order=True)
        .agg(pl.when(carried.sum() > 0).then(carried.max() / carried.mean()).alias("ratio"))
    )
    return mean_interval(found["ratio"], (1.0, None))


def worst_queue_ms(links: pl.DataFrame) -> pl.DataFrame:
    """The link of each run whose packets waited longest: `run`, `name`, `queue_delay_ms_p99`."""
    waited = pl.col("queue_delay_ms_p99")
    return (
        links.filter(waited.is_not_null())
        .sort(waited, "name", descending=[True, False])
        .unique("run", keep="first", maintain_order=True)
        .sort("run")
        .select("run", "name", "queue_delay_ms_p99")
    )
