"""Measures of flows on radio networks: sums and ratios by seed, shares, causes of losses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import polars as pl

from weir.cells.cells import Cells, cell
from weir.cells.protocol import Cell
from weir.dynamics.fairness import jain
from weir.experiments.contest import Contests
from weir.results.results import Results
from weir.statistics.intervals import Estimate, jackknife, mean_interval, mean_ratio

BySeed = Mapping[int, float | None]

QUANTITIES: Mapping[str, tuple[str, str, float]] = {
    "throughput": ("goodput_mbps", "kbit/s", 1000.0),
    "retransmissions": ("retransmits", "segments", 1.0),
    "delay": ("delay_ms_mean", "ms", 1.0),
    "timeouts": ("timeouts", "timeouts", 1.0),
    "route changes": ("route_changes", "changes", 1.0),
}
"""Columns of table `flows` in the slides' units: column, unit, factor."""

UNITS = {name: unit for name, (_, unit, _) in QUANTITIES.items()}

_FLOWS = ("first", "second")
_MSS = 1000
_WARMUP_S = 5.0
_RTT_PER_HOP_MS = 7.6
"""What 1000 B and their acknowledgement take over an idle hop, each with a mean backoff."""


def memory(hops: int, round_trips: float = 1.0) -> str:
    """Feedback whose average is as long as this number of unloaded round trips over `hops`."""
    return f'{{ kind = "drai", memory = "{hops * _RTT_PER_HOP_MS * round_trips:.1f}ms" }}'


def present(wanted: Sequence[int], lengths: Sequence[int]) -> list[int]:
    """Those of the wanted lengths that this size of the study has."""
    return [hops for hops in wanted if hops in lengths]


def places(
    lengths: Sequence[int], groups: Mapping[str, Sequence[int]]
) -> list[tuple[str, list[int]]]:
    """Columns: each length, then those groups of lengths that are not empty."""
    own = [(f"{hops} hops", [hops]) for hops in lengths]
    taken = (
        (name, [h for h in lengths if low <= h <= high]) for name, (low, high) in groups.items()
    )
    return own + [(name, some) for name, some in taken if some]


def labels(pattern: str, values: Sequence[object]) -> list[str]:
    """Labels of cases that differ in one place, which the pattern marks with `{}`."""
    return [pattern.format(value) for value in values]


def variant_places(lengths: Sequence[int]) -> list[tuple[int, object]]:
    """Lengths and windows at which variants are tried, the last on a cross with NewReno."""
    return [*itertools.product(present((4, 8), lengths), (8, 32)), (4, "beside")]


def by_seed(contests: Contests, quantity: str, label: str, flow: str = "flow") -> BySeed:
    """A quantity of a flow in each repeat of a case."""
    column, _, scale = QUANTITIES[quantity]
    return {
        seed: None if value is None else value * scale
        for seed, value in contests.flow(label, flow, column).items()
    }


def mean(contests: Contests, quantity: str, label: str, flow: str = "flow") -> Estimate:
    """Its mean over the repeats."""
    return mean_interval(by_seed(contests, quantity, label, flow).values(), (0.0, None))


def summed(parts: Sequence[BySeed]) -> BySeed:
    """By seed, the sum of what every part has; of seeds that all of them have."""
    if len(parts) == 1:
        return parts[0]
    seeds = set.intersection(*(set(part) for part in parts)) if parts else set()
    return {seed: math.fsum(part[seed] or 0.0 for part in parts) for seed in sorted(seeds)}


def over(
    contests: Contests, quantity: str, own: Sequence[str], reference: Sequence[str]
) -> Estimate:
    """The sum over some cases over that over others: ratio of means, repeats matched by seed.

    Neither is ever negative, and neither is their ratio.
    """
    ours, theirs = (
        summed([by_seed(contests, quantity, label) for label in labels])
        for labels in (own, reference)
    )
    seeds = sorted(ours.keys() & theirs.keys())
    free = mean_ratio([ours[seed] for seed in seeds], [theirs[seed] for seed in seeds])
    return free if free.lo is None else replace(free, lo=max(free.lo, 0.0))


def mean_over(contests: Contests, quantity: str, labels: Sequence[str]) -> Estimate:
    """The mean over some cases."""
    total = summed([by_seed(contests, quantity, label) for label in labels])
    means = (None if value is None else value / len(labels) for value in total.values())
    return mean_interval(means, (0.0, None))


def _both(contests: Contests, label: str, flows: Sequence[str] = _FLOWS) -> list[list[float]]:
    """Throughputs of several flows of a case, by seed."""
    rates = [by_seed(contests, "throughput", label, flow) for flow in flows]
    seeds = sorted(set.intersection(*(set(rate) for rate in rates)))
    return [[rate[seed] or 0.0 for rate in rates] for seed in seeds]


def fairness(contests: Contests, label: str, flows: Sequence[str] = _FLOWS) -> Estimate:
    """Jain's index of the flows of a case, mean over the repeats."""
    indices = (jain(rates) for rates in _both(contests, label, flows))
    return mean_interval(indices, (1 / len(flows), 1.0))


def fairness_of_means(contests: Contests, label: str) -> Estimate:
    """Jain's index of both flows' mean throughputs, with a jackknife's interval."""
    return jackknife(
        _both(contests, label),
        lambda some: jain([math.fsum(own) for own in zip(*some, strict=True)]),
        (0.5, 1.0),
    )


def share(contests: Contests, label: str, number: int = 0) -> Estimate:
    """Of one of two flows of a case."""
    shares = (own[number] / sum(own) for own in _both(contests, label) if sum(own) > 0)
    return mean_interval(shares, (0.0, 1.0))


def pooled_share(contests: Contests, labels: Sequence[str]) -> Estimate:
    """Of the first of two flows, over several cases: their mean for each repeat, then over those.

    Single cases differ from repeat to repeat by more than the claim, so that none decides alone.
    """
    shares: dict[int, list[float]] = {}
    for label in labels:
        first, second = (by_seed(contests, "throughput", label, flow) for flow in _FLOWS)
        for seed in first.keys() & second.keys():
            both = (first[seed] or 0.0) + (second[seed] or 0.0)
            if both > 0:
                shares.setdefault(seed, []).append((first[seed] or 0.0) / both)
    whole = [own for _, own in sorted(shares.items()) if len(own) == len(labels)]
    return mean_interval((math.fsum(own) / len(own) for own in whole), (0.0, 1.0))


def cross_cells(
    contests: Contests, slides: Mapping[str, Any], pair: Sequence[str], hops: int, setting: str
) -> Iterator[Cell]:
    """What each flow of a pair got, and how evenly both shared, next to what the slides print."""
    label = f"cross, {' + '.join(pair)}, {hops} hops, {setting}"
    table = f"cross of {hops} hops, {setting}"
    own_rows = (r for r in slides["cross"] if (r["hops"], r["pair"]) == (hops, list(pair)))
    slide: Mapping[str, Any] = next(own_rows, {})
    rates = [by_seed(contests, "throughput", label, flow) for flow in _FLOWS]
    if pair[0] == pair[1]:
        for quantity in ("throughput", "delay"):
            total = summed([by_seed(contests, quantity, label, flow) for flow in _FLOWS])
            halves = (None if value is None else value / 2 for value in total.values())
            row, half = f"{pair[0]} beside {pair[0]}", mean_interval(halves, (0.0, None))
            yield cell(table, row, quantity, UNITS[quantity], half)
    else:
        for number, flow in enumerate(_FLOWS):
            row = f"{pair[number]} beside {pair[1 - number]}"
            for quantity in ("throughput", "delay"):
                was = slide[quantity][number] if slide else None
                ours = mean(contests, quantity, label, flow)
                yield cell(table, row, quantity, UNITS[quantity], ours, published=was)
            yield cell(table, row, "share", "share", share(contests, label, number))
    aggregate = mean_interval(summed(rates).values(), (0.0, None))
    for column, unit, ours, name in (
        ("aggregate", "kbit/s", aggregate, "aggregate"),
        ("Jain", "index", fairness(contests, label), "fairness"),
        ("Jain of means", "index", fairness_of_means(contests, label), "fairness"),
    ):
        note = slide.get("note", "") if name == "fairness" else ""
        row, value = " + ".join(pair), slide.get(name)
        yield cell(table, row, column, unit, ours, published=value, note=note)


@lru_cache(maxsize=2)
def _nodes(results: Results) -> pl.DataFrame:
    runs = results.runs.filter(status="ok").select("run", "label")
    return results.scan("nodes").collect().join(runs, on="run")


def per_run(results: Results, label: str, column: str) -> Estimate:
    """A column of table `nodes`, summed over all nodes."""
    own = _nodes(results).filter(label=label)
    totals = own.group_by("run", maintain_order=True).agg(pl.col(column).sum())
    return mean_interval(totals[column], (0.0, None))


def congested(results: Results, label: str) -> Estimate:
    """How many times a sender's layer entered the state of congestion."""
    runs = results.runs.filter(label=label, status="ok")["run"]
    events = results.scan("events").filter(
        pl.col("kind") == "congested", pl.col("run").is_in(runs.implode())
    )
    counts = dict(events.group_by("run").len().collect().iter_rows())
    return mean_interval([counts.get(run, 0) for run in runs], (0.0, None))


def largest_window(results: Results, label: str) -> Estimate:
    """The largest window of any flow, in segments."""
    runs = results.runs.filter(label=label, status="ok")["run"].implode()
    samples = results.scan("samples").filter(pl.col("run").is_in(runs))
    by_run = samples.group_by("run").agg(pl.col("cwnd_bytes").max() / _MSS)
    return mean_interval(by_run.sort("run").collect()["cwnd_bytes"], (0.0, None))


@lru_cache(maxsize=2)
def _slow_start(results: Results) -> pl.DataFrame:
    """By run, its time below a threshold that a timeout set.

    NewReno's window is below its threshold at the start, when nothing is lost yet and there is no
    threshold, and after a timeout (RFC 5681 §3.1). The slides speak of the second.
    """
    runs = results.runs.filter(pl.col("label").str.starts_with("phases,"), status="ok")
    is_below = (pl.col("phase") == "slow_start") & pl.col("ssthresh_bytes").is_not_null()
    return (
        results.scan("samples")
        .filter(pl.col("t_s") >= _WARMUP_S)
        .group_by("run")
        .agg(is_below.mean().alias("share"))
        .collect()
        .join(runs.select("run", "label"), on="run")
        .sort("run")
    )


def slow_start(results: Results, label: str) -> Estimate:
    """The share of the samples in which a window was below its threshold after a timeout."""
    return mean_interval(_slow_start(results).filter(label=label)["share"], (0.0, 1.0))


def longest_slow_start(results: Results, label: str) -> float | None:
    """The largest such share of any connection."""
    shares = _slow_start(results).filter(label=label)["share"]
    return None if shares.is_empty() else round(max(map(float, shares)), 6)


def reached(cells: Cells, key: str, least: float) -> bool | None:
    """Whether what a source calls the largest is reached in one connection at least.

    None if it is not, in too few connections to say that fewer than one in twenty reach it.
    """
    largest = [cell[key] for cell in cells.all if cell[key] is not None]
    if any(value >= least for value in largest):
        return True
    return False if sum(cell["ours"]["n"] for cell in cells.all) >= _ENOUGH else None


_ENOUGH = 59
"""Connections of which none does what one in twenty does, with a probability below 5 %."""


def windows_over_time(results: Results, label: str) -> pl.DataFrame:
    """Windows of the first run of a case: `series` (the flow), `t_s`, `value` in segments."""
    runs = results.runs.filter(label=label, status="ok").sort("run").head(1)
    names = results.flows.select("run", "flow", "name")
    rows = results.scan("samples").join(runs.lazy().select("run"), on="run").collect()
    named = rows.join(names, on=["run", "flow"]).sort("flow", "t_s")
    return named.select(
        pl.col("name").alias("series"), "t_s", (pl.col("cwnd_bytes") / _MSS).alias("value")
    )


def printed_range(slides: Mapping[str, Any], quantity: str) -> tuple[float, float]:
    """The lowest and the highest ratio of Muzha to NewReno in the slides' index comparison."""
    values = [row[quantity]["Muzha"] / row[quantity]["NewReno"] for row in slides["index"]]
    return min(values), max(values)


def printed_share(rows: Sequence[Mapping[str, Any]]) -> float:
    """The mean of the printed shares of the first of two flows."""
    shares = [row["throughput"][0] / math.fsum(row["throughput"]) for row in rows]
    return math.fsum(shares) / len(shares)


def index_of_printed(slides: Mapping[str, Any]) -> int:
    """In how many rows the printed fairness is Jain's index of the printed throughputs.

    Printed indices have two digits, and may be cut off.
    """
    return sum(
        abs((jain(list(row["throughput"])) or 0.0) - row["fairness"]) <= _ROUNDED
        for row in slides["cross"]
    )


_ROUNDED = 0.011


_ABOUT = 0.1


def about_one(ours: Estimate) -> bool | None:
    """Whether the whole interval is close to one; None if only a part of it is."""
    if ours.lo is None or ours.hi is None:
        return None
    if ours.lo >= 1 - _ABOUT and ours.hi <= 1 + _ABOUT:
        return True
    return None if ours.lo <= 1 + _ABOUT and ours.hi >= 1 - _ABOUT else False


def known(cells: Cells, row: str) -> list[str]:
    """The columns in which a row has a value."""
    return [column for column in cells.columns() if cells.mean(row, column) is not None]
