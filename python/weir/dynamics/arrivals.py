"""Flows of many connections: completion times and slowdowns by size.

The classes are those of pFabric (Alizadeh et al., SIGCOMM 2013, §5): up to 100 KB, up to 10 MB,
larger. A slowdown is a completion time over the shortest possible. Connections that the end of a
run cut off have neither, and they are counted: the times of the others are then too good.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from weir.base.grid import counted, listed, number
from weir.statistics.intervals import Estimate, mean_interval, rounded
from weir.statistics.requests import Percentile, percentiles

PERCENTS = (50.0, 99.0)
_FEW = 4


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


@dataclass(frozen=True, slots=True)
class Fates:
    """How many connections of one flow came, in all repeats, and how many of them have no time."""

    flow: str
    n: int
    unfinished: int
    failed: int
    most: int | None
    """Rows of a run at most, where later connections have none."""
    late: int = 0
    """Connections of a list that did not begin before the end of their run or flow."""


def fates(
    flows: pl.DataFrame, arrivals: pl.LazyFrame, most: Mapping[int, int | None]
) -> list[Fates]:
    """What became of the connections of some runs, by flow, without any times.

    `most` has those runs, each with the number of rows of a flow that its scenario allows.
    """
    limits = pl.DataFrame(
        {"run": list(most), "most": list(most.values())},
        {"run": pl.UInt32, "most": pl.Int64},
    )
    sums = (
        arrivals.filter(pl.col("run").is_in(list(most)))
        .group_by("run", "flow")
        .agg(
            pl.len().alias("n"),
            pl.col("fct_s").null_count().alias("untimed"),
            pl.col("failure").count().alias("failed"),
            pl.col("delivered_bytes").sum().alias("of_rows"),
        )
        .collect()
        .join(flows.select("run", "flow", "name", "delivered_bytes"), on=["run", "flow"])
        .join(limits, on="run")
    )
    # A flow that delivered more than its rows had more connections than rows.
    is_cut = (pl.col("n") >= pl.col("most")) & (pl.col("delivered_bytes") > pl.col("of_rows"))
    by_name = (
        sums.sort("run", "flow")
        .group_by("name", maintain_order=True)
        .agg(
            pl.col("n", "untimed", "failed").sum(),
            pl.col("most").filter(is_cut).max(),
        )
    )
    return [
        Fates(name, n, untimed - failed, failed, most)
        for name, n, untimed, failed, most in by_name.iter_rows()
    ]


def left_out(found: Sequence[Fates]) -> list[str]:
    """What to say of connections that are missing in completion times and slowdowns."""
    said = []
    cut = {each.flow: each.unfinished for each in found if each.unfinished}
    if cut:
        biased = any(each.n > each.unfinished + each.failed for each in found if each.unfinished)
        one, many = ("was", "its", "it is"), ("were", "their", "they are")
        were, their, they = one if sum(cut.values()) == 1 else many
        times = ", and the times of the others are too good" if biased else ""
        said.append(
            f"{_of(found, cut)} {were} not done at the end of {their} run: {they} left out of "
            f"completion times and slowdowns{times}."
        )
    if failed := {each.flow: each.failed for each in found if each.failed}:
        are = "is" if sum(failed.values()) == 1 else "are"
        said.append(
            f"{_of(found, failed)} failed and {are} left out of completion times and slowdowns."
        )
    if late := {each.flow: each.late for each in found if each.late}:
        begun = {each.flow: each.n for each in found}
        parts = [f"{n} of the {n + begun[flow]} listed for {flow}" for flow, n in late.items()]
        said.append(f"{listed(parts)} did not begin: the run or the flow had ended.")
    for most in sorted({each.most for each in found if each.most is not None}):
        names = [each.flow for each in found if each.most == most]
        which = listed(names) if len(names) <= _FEW else f"{len(names)} flows"
        first = "the first connection" if most == 1 else f"the first {most} connections"
        said.append(
            f"Of {which}, there are completion times and slowdowns of only {first} of each run "
            "(measure.arrivals)."
        )
    return said


def _of(found: Sequence[Fates], counts: Mapping[str, int]) -> str:
    """`3 of 40 connections of web (7.5 %)`, for each flow or, of many, for all together."""
    came = {each.flow: each.n for each in found if each.flow in counts}
    if len(came) > _FEW:
        counts = {f"{len(came)} flows": sum(counts.values())}
        came = {flow: sum(came.values()) for flow in counts}
    return listed(
        [
            f"{counts[flow]} of {counted(n, 'connection')} of {flow} "
            f"({number(100 * counts[flow] / n)} %)"
            for flow, n in came.items()
        ]
    )


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
