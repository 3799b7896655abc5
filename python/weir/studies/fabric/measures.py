"""Rates of groups of flows, last completions, and how evenly a hash spreads flows over ways."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence

import polars as pl

from weir.cells.cells import cell
from weir.cells.protocol import Cell
from weir.dynamics.fabric import GROUPS, largest_over_mean, size_groups, worst_queue_ms
from weir.results.results import Results
from weir.statistics.counts import chi_square_tail
from weir.statistics.intervals import Estimate, mean_interval

SHORT_BYTES = 100_000
"""Up to here a connection is short: a few round trips at 100 Gbit/s."""

LEAST_EXPECTED = 5.0
"""Classes of a chi-square test with fewer expected cases are joined with their neighbour."""


def group_rate(results: Results, label: str, group: str) -> Estimate:
    """The mean rate of a group's flows in IP bytes, Mbit/s, over the seeds."""
    return mean_interval(_by_seed(results, label, group, pl.col("throughput_mbps").mean()))


def group_jain(results: Results, label: str, group: str) -> Estimate:
    """Jain's index of a group's flows, over the seeds."""
    rate = pl.col("throughput_mbps")
    return mean_interval(_by_seed(results, label, group, _jain(rate)), (0.0, 1.0))


def last_us(results: Results, label: str) -> Estimate:
    """When the last transfer of a run is complete after it began, in µs, over the seeds.

    A run in which one is incomplete makes it unknown.
    """
    return mean_interval(_longest(results, label), (0.0, None))


def slowdowns(results: Results, label: str, share: float) -> Estimate:
    """This quantile of slowdowns, of all seeds together; unknown if a flow did not end."""
    own = results.flows.join(_runs(results, label), on="run")["slowdown"]
    if own.is_empty() or own.null_count():
        return Estimate(None, None, None, 0)
    return Estimate(own.quantile(share, "nearest"), None, None, own.len())


def retransmitted(results: Results, label: str) -> Estimate:
    """The share of data segments that were sent again, over the seeds."""
    own = results.flows.join(_runs(results, label), on="run")
    found = own.group_by("run", maintain_order=True).agg(
        pl.col("retransmits").sum() / pl.col("sent_segments").sum()
    )
    return mean_interval(found["retransmits"], (0.0, 1.0))


def spurious(results: Results, label: str) -> Estimate:
    """The share of retransmissions of what was not lost, over the seeds in which there are any."""
    own = results.flows.join(_runs(results, label), on="run")
    again = pl.col("retransmits").sum()
    found = own.group_by("run", maintain_order=True).agg(
        pl.when(again > 0).then(pl.col("retransmits_spurious").sum() / again).alias("share")
    )
    return mean_interval(found["share"], (0.0, 1.0))


def largest_use(results: Results, label: str) -> Estimate:
    """Bytes of the fullest uplink of the leaves over the mean of all, over the seeds."""
    own = results.links.join(_runs(results, label), on="run")
    return largest_over_mean(own, "^leaf[0-9]+-spine")


def slowdown_cells(results: Results, label: str, flow: str) -> Iterator[Cell]:
    """Percentiles of slowdowns in groups of 5 % of a flow's connections by size.

    Connections of one size are one group.
    """
    named = results.flows.filter(pl.col("name") == flow).select("run", "flow")
    own = _arrivals(results, label).join(named, on=["run", "flow"])
    groups = size_groups(own, min(GROUPS, own["size_bytes"].n_unique()))
    for number, group in enumerate(groups, 1):
        place = f"slowdown of {flow}", f"{number}: {group.up_to_bytes}"
        for found in group.slowdown:
            ours = Estimate(found.value, found.lo, found.hi, found.n)
            yield cell(*place, f"P{found.percent:g}", "ratio", ours, note=found.refusal)
        share = Estimate(group.not_ended / group.n, None, None, group.n)
        yield cell(*place, "not ended", "share", share)


def tail(results: Results, label: str) -> Estimate:
    """The P99 of the slowdowns of short background connections that ended, over the seeds."""
    return mean_interval(_tails(results, label)["tail"], (0.0, None))


def tail_ratio(results: Results, label: str, other: str) -> Estimate:
    """The same over that of another case with the same connections, seed by seed."""
    both = _tails(results, label).join(_tails(results, other), on="seed", suffix="_other")
    return mean_interval(both["tail"] / both["tail_other"], (0.0, None))


def _tails(results: Results, label: str) -> pl.DataFrame:
    named = results.flows.filter(pl.col("name") == "background").select("run", "flow")
    own = _arrivals(results, label).join(named, on=["run", "flow"])
    short = own.filter(pl.col("size_bytes") <= SHORT_BYTES)
    return short.group_by("seed", maintain_order=True).agg(
        pl.col("slowdown").drop_nulls().quantile(0.99, "nearest").alias("tail")
    )


def worst_queue_us(results: Results, label: str) -> Estimate:
    """The P99 of the queueing delay at the port where it is largest, over the seeds."""
    worst = worst_queue_ms(results.links.join(_runs(results, label), on="run"))
    return mean_interval(worst["queue_delay_ms_p99"] * 1e3, (0.0, None))


def dropped(results: Results, label: str) -> Estimate:
    """Packets that switches dropped for lack of memory or of space in a queue, over the seeds."""
    return mean_interval(
        _of_links(results, label, (pl.col("dropped_queue") + pl.col("dropped_buffer")).sum()),
        (0.0, None),
    )


def memory_cells(results: Results, label: str, table: str, row: str) -> Iterator[Cell]:
    """Drops of switches, and the pauses that prevent them; without PFC there are none to count."""
    own = results.links.join(_runs(results, label), on="run")
    yield cell(table, row, "dropped", "packets", dropped(results, label))
    if own["pauses"].null_count() < own.height:
        pauses = mean_interval(_of_links(results, label, pl.col("pauses").sum()), (0.0, None))
        share = mean_interval(_of_links(results, label, pl.col("paused_ratio").max()), (0.0, 1.0))
        yield cell(table, row, "pauses", "", pauses)
        yield cell(table, row, "largest share of time paused", "share", share)
    yield cell(table, row, "queue P99, µs", "us", worst_queue_us(results, label))
    yield cell(table, row, "last completion, µs", "us", last_us(results, label))


def deadlocks(results: Results, label: str) -> Estimate:
    """The share of runs that ended because ports paused each other in a cycle."""
    found = results.runs.filter(label=label, status="ok")["deadlock"]
    return mean_interval(found.is_not_null().cast(pl.Float64), (0.0, 1.0))


def cycle(results: Results, label: str) -> str:
    """The links of the first such cycle; empty without any."""
    found = results.runs.filter(label=label, status="ok")["deadlock"].drop_nulls()
    return f"the first: {found[0]}" if found.len() else ""


def largest_loads(results: Results, label: str, links: Sequence[str], flows: int) -> list[int]:
    """How many of a run's equal flows the fullest of these links carries, for each seed.

    Raises:
        ValueError: the flows did not send equally many packets, so packets do not count flows.
    """
    own = results.links.join(_runs(results, label), on="run").filter(pl.col("name").is_in(links))
    sums = own.group_by("run", maintain_order=True).agg(
        pl.col("delivered_packets").sum().alias("all"), pl.col("delivered_packets")
    )
    found = []
    for total, packets in sums.select("all", "delivered_packets").iter_rows():
        each, rest = divmod(total, flows)
        if not each or rest or any(count % each for count in packets):
            raise ValueError(f"{label}: {packets} packets are not those of {flows} equal flows")
        found.append(max(packets) // each)
    return found


def balls_in_bins(loads: Sequence[int], flows: int, ways: int) -> Estimate:
    """The probability of loads as unlikely as these if every flow takes any way alike (chi-square).

    The statistic is that of Pearson over the number of flows on the fullest way.
    """
    if not loads:
        return Estimate(None, None, None, 0)
    probability = fullest(flows, ways)
    seen = Counter(loads)
    classes = list(_joined([(probability[k] * len(loads), seen[k]) for k in sorted(probability)]))
    statistic = sum((found - expected) ** 2 / expected for expected, found in classes)
    return Estimate(chi_square_tail(statistic, len(classes) - 1), None, None, len(loads))


def mean_load(loads: Sequence[int]) -> Estimate:
    """The mean of the largest loads."""
    return mean_interval(map(float, loads))


def expected_load(flows: int, ways: int) -> float:
    """The expected number of flows on the fullest way, if every flow takes any way alike."""
    return sum(load * part for load, part in fullest(flows, ways).items())


def fullest(flows: int, ways: int) -> dict[int, float]:
    """The distribution of the number of balls in the fullest bin (multinomial, exact)."""
    below = {load: _at_most(flows, ways, load) for load in range(flows + 1)}
    parts = {load: below[load] - below.get(load - 1, 0.0) for load in range(1, flows + 1)}
    return {load: part for load, part in parts.items() if part > 0.0}


def _at_most(flows: int, ways: int, load: int) -> float:
    """The probability that no bin has more balls: n! times a coefficient of (Σ x^k/k!)^ways."""
    series = [1.0, *itertools.repeat(0.0, flows)]
    for _ in range(ways):
        series = [
            sum(series[n - k] / math.factorial(k) for k in range(min(n, load) + 1))
            for n in range(flows + 1)
        ]
    return series[flows] * float(math.factorial(flows)) / float(ways**flows)


def _joined(classes: Sequence[tuple[float, int]]) -> Iterator[tuple[float, int]]:
    """Joins neighbours until each class is expected often enough."""
    expected, found = 0.0, 0
    left = sum(part for part, _ in classes)
    for part, count in classes:
        expected, found, left = expected + part, found + count, left - part
        if expected >= LEAST_EXPECTED and left >= LEAST_EXPECTED:
            yield expected, found
            expected, found = 0.0, 0
    yield expected, found


def _of_links(results: Results, label: str, value: pl.Expr) -> list[float | None]:
    own = results.links.join(_runs(results, label), on="run")
    found = own.group_by("run", maintain_order=True).agg(value.alias("value"))
    return found["value"].to_list()


def _by_seed(results: Results, label: str, group: str, value: pl.Expr) -> list[float | None]:
    own = results.flows.join(_runs(results, label), on="run").filter(
        pl.col("name").str.starts_with(f"{group}_")
    )
    found = own.group_by("run", maintain_order=True).agg(value.alias("value"))
    return found["value"].to_list()


def _jain(value: pl.Expr) -> pl.Expr:
    return value.sum() ** 2 / (value.len() * (value**2).sum())


def _longest(results: Results, label: str) -> list[float | None]:
    connections = _arrivals(results, label)
    rows = (
        connections if connections.height else results.flows.join(_runs(results, label), on="run")
    )
    found = rows.group_by("run", maintain_order=True).agg(
        pl.when(pl.col("fct_s").is_not_null().all()).then(pl.col("fct_s").max() * 1e6)
    )
    return found["fct_s"].to_list()


def _arrivals(results: Results, label: str) -> pl.DataFrame:
    return results.arrivals.join(_runs(results, label), on="run")


def _runs(results: Results, label: str) -> pl.DataFrame:
    return results.runs.filter(label=label, status="ok").select("run", "seed")
