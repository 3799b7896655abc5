"""The named quantities that tables, JSON and reports show, each as one number per run.

Rust measures; this file only says which column is meant, how the flows of one run are put together
and how a number is printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from weir.stats import Bounds

Table = Literal["flows", "links", "runs"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One quantity: `name` is its JSON key, with the unit as suffix."""

    name: str
    title: str
    unit: str
    meaning: str
    better: Literal["more", "less", "neither"]
    table: Table
    value: pl.Expr
    bounds: Bounds = (0.0, None)
    digits: int = 2
    total: pl.Expr | None = None
    """How table `runs` has it for a whole run, where the flows' numbers cannot be put together."""
    scale: float = 1.0
    """What a number is multiplied by when it is printed for people, as 100 for percentages."""

    def text(self, value: float | None) -> str:
        """`value` as people read it, without the unit."""
        return "–" if value is None else f"{value * self.scale:.{self.digits}f}"


def _pooled(mean: str, samples: str) -> pl.Expr:
    """The mean over all samples of all flows, from each flow's mean and number of samples."""
    weight = pl.when(pl.col(mean).is_not_null()).then(pl.col(samples))
    total = weight.sum()
    return pl.when(total > 0).then((pl.col(mean) * weight).sum() / total)


def _ratio(part: pl.Expr, whole: str) -> pl.Expr:
    return pl.when(pl.col(whole).sum() > 0).then(part.sum() / pl.col(whole).sum())


def _rtt_percentile(percent: int) -> Metric:
    name = f"rtt_ms_p{percent}"
    return Metric(
        name,
        f"RTT P{percent}",
        "ms",
        f"the round-trip sample of nearest rank {percent} %; only of runs with a single flow, "
        "since percentiles of several cannot be joined",
        "less",
        "flows",
        pl.when(pl.len() == 1).then(pl.col(name).first()),
    )


def _queue_delay_percentile(percent: int) -> Metric:
    name = f"queue_delay_ms_p{percent}"
    return Metric(
        name,
        f"queue delay P{percent}",
        "ms",
        f"the waiting time of nearest rank {percent} % among the packets of the bottleneck",
        "less",
        "links",
        pl.col(name).first(),
    )


def _retransmits(cause: str, meaning: str) -> Metric:
    name = f"retransmits{cause and '_'}{cause}"
    title = f"{cause.upper() if cause in ('rto', 'tlp') else cause} retransmits".strip()
    return Metric(name, title, "", meaning, "less", "flows", pl.col(name).sum(), digits=1)


def _time(limit: str, meaning: str) -> Metric:
    name = f"time_{limit}_s"
    title = "waiting for RTO" if limit == "rto" else limit.replace("_", "-")
    return Metric(name, title, "s", meaning, "neither", "flows", pl.col(name).mean())


METRICS: tuple[Metric, ...] = (
    Metric(
        "goodput_mbps",
        "goodput",
        "Mbit/s",
        "new application bytes delivered in order, over the time in which any flow was measured",
        "more",
        "flows",
        pl.col("goodput_mbps").first(),
        total=pl.col("goodput_mbps").first(),
    ),
    Metric(
        "throughput_mbps",
        "throughput",
        "Mbit/s",
        "IP bytes sent, headers and retransmissions included, over the same time",
        "neither",
        "flows",
        pl.col("throughput_mbps").first(),
        total=pl.col("throughput_mbps").first(),
    ),
    Metric(
        "utilisation",
        "utilisation",
        "%",
        "bits that left the bottleneck over what it could have carried",
        "more",
        "runs",
        pl.col("utilisation").first(),
        bounds=(0.0, 1.0),
        scale=100.0,
    ),
    Metric(
        "rtt_ms_mean",
        "RTT",
        "ms",
        "mean of all round-trip samples of all flows",
        "less",
        "flows",
        _pooled("rtt_ms_mean", "rtt_samples"),
    ),
    *map(_rtt_percentile, (50, 95, 99)),
    Metric(
        "queue_delay_ms_mean",
        "queue delay",
        "ms",
        "mean waiting time per packet at the bottleneck",
        "less",
        "links",
        pl.col("queue_delay_ms_mean").first(),
    ),
    *map(_queue_delay_percentile, (50, 95, 99)),
    Metric(
        "loss_ratio",
        "lost",
        "%",
        "data packets that the network dropped over data packets sent, all flows together",
        "less",
        "flows",
        _ratio(pl.col("loss_ratio") * pl.col("sent_segments"), "sent_segments"),
        bounds=(0.0, 1.0),
        digits=3,
        scale=100.0,
    ),
    Metric(
        "retransmit_ratio",
        "retransmitted",
        "%",
        "retransmitted segments over all data segments sent, all flows together",
        "less",
        "flows",
        _ratio(pl.col("retransmits"), "sent_segments"),
        bounds=(0.0, 1.0),
        digits=3,
        scale=100.0,
    ),
    _retransmits("", "data segments sent again, the sum of all flows"),
    _retransmits("fast", "of these, repairs that acknowledgements asked for"),
    _retransmits("rto", "of these, repairs after a retransmission timeout"),
    _retransmits("tlp", "of these, tail loss probes"),
    _retransmits("spurious", "of these, those found to have been unnecessary"),
    Metric(
        "timeouts",
        "timeouts",
        "",
        "retransmission timeouts, the sum of all flows",
        "less",
        "flows",
        pl.col("timeouts").sum(),
        digits=1,
    ),
    Metric(
        "jain_index",
        "Jain index",
        "",
        "fairness of the flows' goodputs: 1 when all are equal, 1/n when one has everything",
        "more",
        "runs",
        pl.col("jain_index").first(),
        bounds=(0.0, 1.0),
        digits=3,
    ),
    Metric(
        "fct_s",
        "completion time",
        "s",
        "from a flow's start to its last byte delivered, mean over the flows, if all completed",
        "less",
        "flows",
        pl.when(pl.col("completed").all()).then(pl.col("fct_s").mean()),
        digits=3,
    ),
    Metric(
        "cwnd_bytes_mean",
        "cwnd",
        "bytes",
        "the congestion window averaged over time, mean over the flows",
        "neither",
        "flows",
        pl.col("cwnd_bytes_mean").mean(),
        digits=0,
    ),
    Metric(
        "cwnd_bytes_max",
        "largest cwnd",
        "bytes",
        "the largest congestion window of any flow",
        "neither",
        "flows",
        pl.col("cwnd_bytes_max").max(),
        digits=0,
    ),
    _time("cwnd_limited", "time during which cwnd held a sender back, mean over the flows"),
    _time("rwnd_limited", "time during which the receiver's window did"),
    _time("app_limited", "time during which the application had nothing to send"),
    _time("rto", "time spent waiting for a retransmission timeout"),
)

BY_NAME = {metric.name: metric for metric in METRICS}

HEADLINE = (
    "goodput_mbps",
    "utilisation",
    "queue_delay_ms_mean",
    "queue_delay_ms_p95",
    "retransmit_ratio",
)
"""What a comparison prints for people; JSON carries every metric that has a value."""


def per_run(
    runs: pl.DataFrame,
    flows: pl.DataFrame,
    links: pl.DataFrame,
    metrics: Sequence[Metric] = METRICS,
) -> pl.DataFrame:
    """One row per run with one column per metric; a metric without a value is null."""
    tables = {"runs": runs, "flows": flows, "links": _bottlenecks(links)}
    result = runs.select("run").sort("run")
    for name, table in tables.items():
        own = {m.name: m.value for m in metrics if m.table == name and m.total is None}
        if name == "runs":
            own |= {m.name: m.total for m in metrics if m.total is not None}
        if table.is_empty():
            result = result.with_columns(pl.lit(None, pl.Float64).alias(name) for name in own)
        elif own:
            wanted = [value.cast(pl.Float64).alias(name) for name, value in own.items()]
            result = result.join(table.group_by("run").agg(wanted), on="run", how="left")
    return result.select("run", *(metric.name for metric in metrics))


def per_flow(flows: pl.DataFrame, metrics: Sequence[Metric] = METRICS) -> pl.DataFrame:
    """One row per run and flow, with those metrics that a single flow has."""
    wanted = [m.value.cast(pl.Float64).alias(m.name) for m in metrics if m.table == "flows"]
    return flows.group_by("run", "flow", "name", "stack").agg(wanted).sort("run", "flow")


def _bottlenecks(links: pl.DataFrame) -> pl.DataFrame:
    """The link that a run's utilisation is about: the first that is monitored, or the first."""
    return links.sort("run", "monitored", "link", descending=[False, True, False])
