"""Flows of many connections: completion times and slowdowns by size.

The classes are those of pFabric (Alizadeh et al., SIGCOMM 2013, §5): up to 100 KB, up to 10 MB,
larger. A slowdown is a completion time over the shortest possible. Connections that the end of a
run cut off have neither, and they are counted: the times of the others are then too good.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from weir.statistics.intervals import Estimate, mean_interval, rounded
from weir.statistics.requests import Percentile, percentiles

PERCENTS = (50.0, 99.0)


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Connections of more than `above` and at most `up_to` bytes; None for no bound."""

    name: str
    above: int
    up_to: int | None


CLASSES = (
    SizeClass("all", 0, None),
    SizeClass("≤ 100 KB", 0, 100_000),
    SizeClass("≤ 10 MB", 100_000, 10_000_000),
    SizeClass("> 10 MB", 10_000_000, None),
)


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean over the repeats, with its interval, and percentiles of all connections together."""

    mean: Estimate
    percentiles: Sequence[Percentile]

    def as_json(self, name: str) -> dict[str, Any]:
        """`name_mean`, `name_p50`, …; a percentile of too few connections is null."""
        found = {f"{name}_p{p.percent:g}": rounded(p.value) for p in self.percentiles}
        return {f"{name}_mean": self.mean.as_json(), **found}


@dataclass(frozen=True, slots=True)
class Completions:
    """What became of the connections of one flow and one class in the repeats of a case."""

    flow: str
    sizes: SizeClass
    n: int
    """Connections that came."""
    unfinished: int
    """Of these, how many the end of the run cut off."""
    failed: int
    """Of these, how many failed."""
    fct_ms: Spread
    slowdown: Spread

    def as_json(self) -> dict[str, Any]:
        """One object of `--json`."""
        return {
            "flow": self.flow,
            "sizes": self.sizes.name,
            "above_bytes": self.sizes.above,
            "up_to_bytes": self.sizes.up_to,
            "n": self.n,
            "unfinished": self.unfinished,
            "failed": self.failed,
            **self.fct_ms.as_json("fct_ms"),
            **self.slowdown.as_json("slowdown"),
        }


def completions(
    flows: pl.DataFrame, arrivals: pl.LazyFrame, runs: Sequence[int]
) -> list[Completions]:
    """By flow and class of sizes, what became of the connections of some runs, repeats of a case.

    `flows` and `arrivals` are tables of a result directory. A class in which none came is left out.
    """
    names = flows.select("run", "flow", "name")
    rows = (
        arrivals.filter(pl.col("run").is_in(list(runs)))
        .join(names.lazy(), on=["run", "flow"], maintain_order="left")
        .select("run", "name", "size_bytes", "fct_s", "slowdown", "failure")
        .collect()
    )
    return [
        found
        for (name,), own in rows.group_by("name", maintain_order=True)
        for found in _by_size(str(name), own)
    ]


def _by_size(name: str, rows: pl.DataFrame) -> Iterator[Completions]:
    for sizes in CLASSES:
        within = pl.col("size_bytes") > sizes.above
        if sizes.up_to is not None:
            within &= pl.col("size_bytes") <= sizes.up_to
        own = rows.filter(within)
        if own.is_empty():
            continue
        failed = own.height - own["failure"].null_count()
        yield Completions(
            flow=name,
            sizes=sizes,
            n=own.height,
            unfinished=own["fct_s"].null_count() - failed,
            failed=failed,
            fct_ms=_spread(own, pl.col("fct_s") * 1e3),
            slowdown=_spread(own, pl.col("slowdown")),
        )


def _spread(rows: pl.DataFrame, value: pl.Expr) -> Spread:
    values = rows.select("run", value.alias("value"))
    means = values.group_by("run", maintain_order=True).agg(pl.col("value").mean())
    return Spread(
        mean_interval(means["value"], (0.0, None)), percentiles(values["value"], PERCENTS)
    )
