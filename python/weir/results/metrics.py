"""The named quantities that tables, JSON and reports show, each as one number per run.

Rust measures; this file only says which column is meant, how the flows of one run are put together
and how a number is printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from weir.statistics.intervals import Bounds
from weir.statistics.requests import needed

Table = Literal["flows", "links", "runs", "sharing", "metrics"]
"""Where a value comes from; `metrics` means from other metrics of the same run or flow."""


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
    pooled: pl.Expr | None = None
    """How table `requests` has it for several flows, as long as no request is missing there."""
    scale: float = 1.0
    """What a number is multiplied by when it is printed for people, as 100 for percentages."""

    @property
    def heading(self) -> str:
        """The title with the unit: of an axis or a column."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    def text(self, value: float | None) -> str:
        """`value` as people read it, without the unit."""
        return "–" if value is None else f"{value * self.scale:.{self.digits}f}"


def _pooled(mean: pl.Expr, samples: str) -> pl.Expr:
    """The mean over all samples of all flows, from each flow's mean and number of samples."""
    weight = pl.when(mean.is_not_null()).then(pl.col(samples))
    total = weight.sum()
    return pl.when(total > 0).then((mean * weight).sum() / total)


def _ratio(part: pl.Expr, whole: str) -> pl.Expr:
    """`part` over `whole`, of the flows that have such a part."""
    total = pl.when(part.is_not_null()).then(pl.col(whole)).sum()
    return pl.when(total > 0).then(part.sum() / total)


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


def _latency_percentile(name: str, percent: float) -> Metric:
    """Exact for one flow, pooled from the raw latencies for several, refused where too few."""
    column = f"request_latency_ms_{name}"
    permille = round(percent * 10)
    rank = (pl.len() * permille + 999) // 1000
    raw = pl.col("latency_ms").sort().get(rank - 1, null_on_oob=True)
    return Metric(
        column,
        f"request P{percent:g}",
        "ms",
        f"the latency of nearest rank {percent:g} % among all requests of all flows, given from "
        f"{needed(percent)} requests on",
        "less",
        "flows",
        pl.when(pl.len() == 1).then(pl.col(column).first()),
        pooled=pl.when(pl.len() >= needed(percent)).then(raw),
    )


def _jain(name: str, title: str, meaning: str) -> Metric:
    column = f"jain_index_{name}"
    value = pl.col(column).first()
    return Metric(column, title, "", meaning, "more", "sharing", value, bounds=(0.0, 1.0), digits=3)


def _retransmits(cause: str, meaning: str) -> Metric:
    name = f"retransmits{cause and '_'}{cause}"
    title = f"{cause.upper() if cause in ('rto', 'tlp') else cause} retransmits".strip()
    return Metric(name, title, "", meaning, "less", "flows", _count(name), digits=1)


def _of_path(name: str, title: str, unit: str, meaning: str, digits: int = 2) -> Metric:
    """What only `weir test` measures, one number per run."""
    better: Literal["more", "less"] = "more" if unit in ("RPM", "Mbit/s") else "less"
    scale = 100.0 if unit == "%" else 1.0
    value = pl.col(name).first()
    return Metric(name, title, unit, meaning, better, "runs", value, digits=digits, scale=scale)


def _time(limit: str, meaning: str) -> Metric:
    name = f"time_{limit}_s"
    title = "waiting for RTO" if limit == "rto" else limit.replace("_", "-")
    return Metric(name, title, "s", meaning, "neither", "flows", pl.col(name).mean())


def _count(column: str) -> pl.Expr:
    """The sum over the flows that have such a count."""
    return pl.when(pl.col(column).is_not_null().any()).then(pl.col(column).sum())


_POWER = pl.col("goodput_mbps") / (pl.col("rtt_ms_mean") / 1000)

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
        _pooled(pl.col("rtt_ms_mean"), "rtt_samples"),
    ),
    *map(_rtt_percentile, (50, 95, 99)),
    Metric(
        "rtt_inflation",
        "RTT inflation",
        "",
        "mean over smallest RTT of a flow, weighted by the samples of the flows",
        "less",
        "flows",
        _pooled(pl.col("rtt_ms_mean") / pl.col("rtt_ms_min"), "rtt_samples"),
        bounds=(1.0, None),
    ),
    Metric(
        "power_mbps_per_s",
        "power",
        "Mbit/s²",
        "goodput over mean RTT",
        "more",
        "metrics",
        pl.when(pl.col("rtt_ms_mean") > 0).then(_POWER),
        digits=0,
    ),
    Metric(
        "log_power",
        "log power",
        "",
        "natural logarithm of power: a tenth more goodput weighs as much as a tenth less delay",
        "more",
        "metrics",
        pl.when((pl.col("rtt_ms_mean") > 0) & (pl.col("goodput_mbps") > 0)).then(_POWER.log()),
        bounds=(None, None),
    ),
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
    _retransmits("fast", "of these, by fast retransmit"),
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
        _count("timeouts"),
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
        "share",
        "share",
        "%",
        "a flow's goodput over the capacity of the bottleneck; of single flows only",
        "neither",
        "flows",
        pl.when(pl.len() == 1).then(pl.col("share").first()),
        bounds=(0.0, 1.0),
        scale=100.0,
    ),
    _jain(
        "common",
        "Jain, all active",
        "of the goodputs over the time in which all flows of the run are active",
    ),
    _jain(
        "converged_mean",
        "Jain, converged",
        "mean over bins of 1 s since the flows converged, of the runs that did",
    ),
    _jain("converged_min", "least Jain, converged", "the least of these bins"),
    Metric(
        "goodput_max_min_ratio",
        "goodput, most to least",
        "",
        "the goodput of the flow that got most over that of the flow that got least",
        "less",
        "flows",
        pl.when((pl.len() > 1) & (pl.col("goodput_mbps").min() > 0)).then(
            pl.col("goodput_mbps").max() / pl.col("goodput_mbps").min()
        ),
        bounds=(1.0, None),
    ),
    Metric(
        "requests",
        "requests",
        "",
        "requests answered, the sum of all flows",
        "more",
        "flows",
        _count("requests"),
        digits=0,
    ),
    Metric(
        "requests_unanswered",
        "unanswered requests",
        "",
        "requests made but not answered by the end, the sum of all flows",
        "less",
        "flows",
        _count("requests_unanswered"),
        digits=1,
    ),
    Metric(
        "request_latency_ms_mean",
        "request latency",
        "ms",
        "from a request to its complete answer, mean over all requests of all flows",
        "less",
        "flows",
        _pooled(pl.col("request_latency_ms_mean"), "requests"),
    ),
    _latency_percentile("p50", 50),
    _latency_percentile("p90", 90),
    _latency_percentile("p99", 99),
    _latency_percentile("p999", 99.9),
    Metric(
        "request_latency_ms_max",
        "longest request",
        "ms",
        "the longest latency of any request",
        "less",
        "flows",
        pl.col("request_latency_ms_max").max(),
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
        "slowdown",
        "slowdown",
        "",
        "completion time over the shortest possible, mean over the flows, if all completed",
        "less",
        "flows",
        pl.when(pl.col("completed").all()).then(pl.col("slowdown").mean()),
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
    _of_path(
        "idle_rtt_ms_p50",
        "idle RTT",
        "ms",
        "median round trip of probes before the load; `weir test`",
    ),
    _of_path(
        "loaded_rtt_ms_p50", "loaded RTT", "ms", "median round trip of probes next to the load"
    ),
    _of_path("loaded_rtt_ms_p95", "loaded RTT P95", "ms", "95th percentile of it"),
    _of_path("loaded_rtt_ms_p99", "loaded RTT P99", "ms", "99th percentile of it"),
    _of_path(
        "queue_up_ms_p50",
        "queue delay up",
        "ms",
        "median one-way delay of loaded probes to the server, above the smallest of the run",
    ),
    _of_path("queue_down_ms_p50", "queue delay down", "ms", "the same from the server"),
    _of_path(
        "responsiveness_rpm",
        "responsiveness",
        "RPM",
        "round trips per minute under load, of new and of loaded connections",
        digits=0,
    ),
    _of_path("jitter_ms", "jitter", "ms", "jitter of datagrams at a rate (RFC 3550 §6.4.1)"),
    _of_path("probe_loss_ratio", "probes lost", "%", "loaded probes without an answer", digits=3),
    _of_path(
        "policer_mbps",
        "policer",
        "Mbit/s",
        "rate of a policer that dropped packets of our transport in `weir test`, as data per time",
    ),
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
    sharing: pl.DataFrame,
    requests: pl.DataFrame,
) -> pl.DataFrame:
    """One row per run with one column per metric; a metric without a value is null.

    `sharing` is the table of `weir.dynamics.sharing`; the others are those of a result directory. A
    column that a table does not have, because an older version wrote it, is null.
    """
    tables = {"runs": runs, "flows": flows, "links": _bottlenecks(links), "sharing": sharing}
    result = runs.select("run").sort("run")
    for name, table in tables.items():
        own = {m.name: m.value for m in METRICS if m.table == name and m.total is None}
        if name == "runs":
            own |= {m.name: m.total for m in METRICS if m.total is not None}
        result = result.join(_per_run(table, own), on="run", how="left")
    pooled = _per_run(
        _complete(requests, flows), {m.name: m.pooled for m in METRICS if m.pooled is not None}
    )
    result = result.join(pooled, on="run", how="left", suffix=_POOLED).with_columns(
        pl.coalesce(name, name + _POOLED) for name in pooled.columns if name != "run"
    )
    return _derived(result).select("run", *(metric.name for metric in METRICS))


def per_flow(flows: pl.DataFrame) -> pl.DataFrame:
    """One row per run and flow, with those metrics that a single flow has."""
    own = {m.name: m.value for m in METRICS if m.table == "flows"}
    keys = ("run", "flow", "name", "stack")
    return _derived(_grouped(flows, keys, own)).sort("run", "flow")


_POOLED = "_pooled"


def _per_run(table: pl.DataFrame, values: Mapping[str, pl.Expr]) -> pl.DataFrame:
    if table.is_empty():
        return pl.DataFrame(schema={"run": pl.UInt32, **dict.fromkeys(values, pl.Float64)})
    return _grouped(table, ("run",), values)


def _grouped(
    table: pl.DataFrame, keys: Sequence[str], values: Mapping[str, pl.Expr]
) -> pl.DataFrame:
    present = set(table.columns)
    return table.group_by(keys).agg(
        (value if present.issuperset(value.meta.root_names()) else pl.lit(None))
        .cast(pl.Float64)
        .alias(name)
        for name, value in values.items()
    )


def _derived(values: pl.DataFrame) -> pl.DataFrame:
    return values.with_columns(m.value.alias(m.name) for m in METRICS if m.table == "metrics")


def _complete(requests: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """The requests of those runs of which all have been kept."""
    if requests.is_empty() or "requests_kept" not in flows.columns:
        return requests.clear()
    is_cut = pl.col("requests") > pl.col("requests_kept")
    return requests.join(flows.filter(is_cut), on="run", how="anti")


def _bottlenecks(links: pl.DataFrame) -> pl.DataFrame:
    """The link that a run's utilisation is about: the first that is monitored, or the first."""
    return links.sort("run", "monitored", "link", descending=[False, True, False])
