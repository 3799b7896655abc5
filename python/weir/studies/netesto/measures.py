"""What Netesto records of its tests, as cells: one table per quantity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from weir.cells.cells import Cells, cell, frame, goodput_interval
from weir.cells.protocol import Cell
from weir.experiments.joins import Join, joins, wait_cell
from weir.experiments.latencies import Latencies, kind, labelled_flows
from weir.experiments.networks import LAN, NETWORKS, WAN_10M, WAN_100M, Network
from weir.results.results import Results
from weir.statistics.censoring import Wait
from weir.statistics.intervals import Estimate, mean_interval
from weir.studies.netesto.experiment import (
    MIXES,
    RATE_STACKS,
    SIZE_STACKS,
    Extent,
    Streams,
    flow_name,
    rate_label,
    size_buffers,
    size_label,
    small_and_large,
    stream_tests,
)

__all__ = ["NETWORKS", "flow_name", "size_buffers", "small_and_large"]

SHARE, CROSSES, RECLAIMS = "share of the newest", "crosses", "reclaims"
RATIO, RTT, LOST = "largest over smallest", "RTT", "retransmitted"
STREAM_QUANTITIES = {
    SHARE: "share",
    CROSSES: "s",
    RECLAIMS: "s",
    RATIO: "times",
    RTT: "ms",
    LOST: "%",
}

GOODPUT, EVENNESS, TAIL = "goodput", "largest over smallest goodput", "P99"


def stream_table(quantity: str, network: str) -> str:
    """The table of a quantity of the staggered tests."""
    return f"{quantity}, {network}"


def stream_cells(results: Results, extent: Extent) -> Iterator[Cell]:
    """Per test and buffer: shares, times, the ratio of goodputs, round-trip time, losses."""
    per_run = results.per_run
    for test in stream_tests(extent):
        found = joins(results, test.label, test.timing)
        row, column = f"{test.timing.name}, {test.who}", f"{test.bdp:g} BDP"
        own = per_run.filter(label=test.label)
        waits: dict[str, tuple[list[Wait | None], str]] = {
            CROSSES: ([join.crosses() for join in found], "crossed"),
            RECLAIMS: ([join.reclaims() for join in found], "reclaimed"),
        }
        values = {
            SHARE: mean_interval([_life_share(join) for join in found], (0.0, 1.0)),
            RATIO: mean_interval(ratios(found), (1.0, None)),
            RTT: mean_interval(own["rtt_ms_mean"], (0.0, None)),
            LOST: mean_interval(own["retransmit_ratio"] * 100, (0.0, 100.0)),
        }
        for quantity, unit in STREAM_QUANTITIES.items():
            table = stream_table(quantity, test.network.id)
            if quantity in waits:
                times, done = waits[quantity]
                yield wait_cell((table, row, column), times, done)
            else:
                yield cell(table, row, column, unit, values[quantity])


def ratios(found: Sequence[Join]) -> list[float | None]:
    """Netesto's fairness per run: the largest mean goodput over the smallest, while all send."""
    kept: list[float | None] = []
    for join in found:
        rates = [flow.rate(join.newest.start_s, join.newest.seen_s) for flow in join.flows]
        kept.append(max(rates) / min(rates) if min(rates) > 0 else None)
    return kept


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far the repeats of one test lie apart, which differ in start times only.

    The values are the newest flow's mean goodput over the first's, while both send.
    """

    test: Streams
    low: float
    high: float
    n: int


def start_sensitivity(results: Results, extent: Extent) -> Sensitivity:
    """The 2-flow test of one algorithm in which repeats differ most."""
    found = []
    for test in stream_tests(extent):
        if len(test.stacks) == 2 and len(set(test.stacks)) == 1:
            shares = [_life_share(join) for join in joins(results, test.label, test.timing)]
            times = [share / (1 - share) for share in shares if share is not None and 0 < share < 1]
            if times:
                found.append(Sensitivity(test, min(times), max(times), len(times)))
    return max(found, key=lambda one: one.high / one.low)


def rate_cells(results: Results, extent: Extent) -> Iterator[Cell]:
    """Per mix, number and algorithm: all goodput, how uneven within a size, and latency."""
    flows = labelled_flows(results)
    samples = Latencies(results)
    for mix, sizes in MIXES.items():
        for stack in RATE_STACKS:
            for instances in extent.instances:
                label, column = rate_label(mix, instances, stack), str(instances)
                own = flows.filter(label=label)
                total = own.group_by("run").agg(pl.col("goodput_mbps").sum() / 1000)
                goodput = goodput_interval(total["goodput_mbps"], LAN.rate_mbps / 1000)
                yield cell(f"{GOODPUT}, {mix}", stack, column, "Gbit/s", goodput)
                yield cell(f"{EVENNESS}, {mix}", stack, column, "times", _evenness(own))
                for size in map(flow_name, sizes):
                    place = (f"{TAIL} of {size}, {mix}", stack, column)
                    yield samples.cell(label, 99, place, flows=size)


def size_cells(results: Results, extent: Extent) -> Iterator[Cell]:
    """Per network, buffer, k and algorithm: latency of the small, their share beside the large."""
    flows = labelled_flows(results)
    samples = Latencies(results)
    for network in (LAN, WAN_100M, WAN_10M):
        if network.id not in extent.size:
            continue
        for bdp in size_buffers(network):
            where = size_where(network, bdp)
            for stack in SIZE_STACKS:
                for count in extent.large_counts:
                    label, column = size_label(network, bdp, count, stack), str(count)
                    place = (f"{TAIL} of small, {where}", stack, column)
                    yield samples.cell(label, 99, place, flows="small")
                    ratio = _small_over_large(flows.filter(label=label))
                    yield cell(f"small over large, {where}", stack, column, "times", ratio)


def size_where(network: Network, bdp: float | None) -> str:
    """Network and buffer of a size test, as its tables name them."""
    return network.id if bdp is None else f"{network.id}, {bdp:g} BDP"


def _life_share(join: Join) -> float | None:
    """What the newest flow has of all goodput over its whole life."""
    rates = [flow.rate(join.newest.start_s, join.newest.seen_s) for flow in join.flows]
    return rates[-1] / sum(rates) if sum(rates) else None


def _evenness(flows: pl.DataFrame) -> Estimate:
    """The largest over the smallest goodput among flows that ask for the same, the worst size."""
    by_kind = flows.group_by("run", kind()).agg(
        pl.col("goodput_mbps").max().alias("high"), pl.col("goodput_mbps").min().alias("low")
    )
    worst = (
        by_kind.filter(pl.col("low") > 0)
        .group_by("run")
        .agg((pl.col("high") / pl.col("low")).max().alias("ratio"))
    )
    return mean_interval(worst["ratio"], (1.0, None))


def _small_over_large(flows: pl.DataFrame) -> Estimate:
    """Mean goodput of a connection of small requests over that of one of large ones."""
    means = flows.group_by("run", kind()).agg(pl.col("goodput_mbps").mean())
    wide = means.pivot(on="kind", index="run", values="goodput_mbps")
    if not {"small", "large"} <= set(wide.columns):
        return Estimate(None, None, None, 0)
    return mean_interval(wide["small"] / wide["large"], (0.0, None))


titles = {network.id: network.title for network in NETWORKS}


def equal_rows(own: Cells) -> list[str]:
    """The rows of two flows of one algorithm."""
    return [row for row in own.rows() if row.startswith("2-flow, ") and " then " not in row]


def _of_row(own: Cells, row: str, panel: str, series: str) -> pl.DataFrame:
    """One row over the buffers, as a line of that name."""
    places = [float(column.removesuffix(" BDP")) for column in own.columns()]
    part = frame(Cells([c for c in own.all if c["row"] == row]), panel, places)
    return part.with_columns(pl.lit(series).alias("series"))


def pair_frames(own: Cells) -> pl.DataFrame:
    """Shares of the later of two flows; panels say who comes first."""
    found: dict[str, list[pl.DataFrame]] = {}
    names = ("same algorithm", "CUBIC first", "CUBIC second")
    for row in own.rows():
        if row.startswith("2-flow, "):
            first, _, second = row.removeprefix("2-flow, ").partition(" then ")
            panel = names[0] if not second else names[1] if first == "cubic" else names[2]
            series = second if panel == names[1] else first
            found.setdefault(panel, []).append(_of_row(own, row, panel, series))
    return pl.concat(part for name in names for part in found.get(name, []))


def equal_frames(own: Cells) -> pl.DataFrame:
    """Flows of one algorithm in both tests."""
    rows = [row for row in own.rows() if " then " not in row]
    parts = [row.partition(", ") for row in sorted(rows, key=lambda row: row[:6])]
    return pl.concat(
        _of_row(own, f"{test}, {stack}", f"{test} test", stack) for test, _, stack in parts
    )
