"""From the results of `weir test` to the path in one of its directions.

There are no packets, but readings of `TCP_INFO`, ten a second, and the round trips of fifty probes
a second. A probe waits in the same queue as the load, so its wait is that of the queue. The test
itself looks for policers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from weir.base.errors import InputError
from weir.estimates import losses
from weir.estimates.fit import OF_LINK, with_errors
from weir.estimates.packets import Flags, Floats
from weir.estimates.path import Path
from weir.estimates.quantity import Quantity, share
from weir.estimates.rate import MOST_RATE, middle
from weir.modelling.loads import measured_loads
from weir.modelling.measured import Flow, Measurement
from weir.probes.policing import COUNT_S
from weir.results.results import Results

TABLE = "probes"
"""The table that only results of `weir test` have."""

_HEADERS = 52
_PROBE_BYTES = 92
_PROBES_MBPS = 50 * _PROBE_BYTES * 8e-6
_BIN_S = 0.5
_FEWEST_BINS = 4
_BUSY_SHARE = 0.1
_LEAST_BUSY_MS = 1.0
_CLOCK_MS = 0.1
_LEAST_ERROR = 0.002
_LEAST_MBPS = 1e-3
"""The lowest rate of a scenario."""
_MOSTLY = 0.5
_LEAST_USED = 0.75
"""Share of a policer's rate that a flow gets at least, as Reno behind a small bucket."""
_NEVER = 1e9
_REPAIRING = ("recovery", "loss")


@dataclass(frozen=True)
class _Run:
    """One load: its readings and probes, on one time axis."""

    t_s: Floats
    """Ends of the intervals between readings."""
    acked: Floats
    """Bytes acknowledged in each interval, by all flows."""
    retransmits: Floats
    repairs: Flags
    """Whether a sender was in recovery at an end of the interval."""
    wait_ms: Floats
    """The longest wait of a probe in each interval and a round trip before; NaN without probes."""
    probed_s: Floats
    """When each loaded probe was sent."""
    waits_ms: Floats
    """How long it waited."""


def of_test(results: Results, source: str, number: int | None, stack: str | None) -> Measurement:
    """The path in the direction of a TCP load: the first of `results`, or the case `number`.

    Raises:
        InputError: there is no such load, or too little of it.
    """
    case = _case(results, source, number)
    runs = results.runs.filter((pl.col("label") == case["label"]) & (pl.col("status") == "ok"))
    chosen = pl.col("run").is_in(runs["run"].implode())
    tables = {
        name: results.scan(name).filter(chosen).collect()
        for name in ("flows", "samples", "limits", TABLE)
    }
    probes = tables[TABLE].filter(~pl.col("lost"))
    idle = probes.filter(pl.col("phase") == "idle")["rtt_ms"].drop_nulls().to_numpy()
    if not idle.size:
        raise InputError(f"{source}: no idle probe of {case['label']} was answered")
    least = float(probes["rtt_ms"].min())  # type: ignore[arg-type]
    own = [_run(tables, run, least) for run in runs["run"]]
    packet = _packet(tables["flows"], source)
    path, limit = _path(own, idle, least, packet, tables["samples"])
    for other in _others(results, case):
        path = _with_bounds(path, _path(other, idle, least, packet, tables["samples"])[0])
    policer, bucket = _policer(tables, len(own), packet)
    if policer and not _is_link(policer, path):
        fastest = _fastest(tables["samples"]) * packet / (packet - _HEADERS)
        path, limit = _policed(path, policer, bucket, fastest), "policer"
    flow = _flow(case, tables["flows"], stack, limit)
    warning = "a test has no packets: losses in bursts and reordering are not looked for"
    slices = _slices(tables["samples"].filter(pl.col("run") == runs["run"][0]))
    loads = () if stack else measured_loads(results, case)
    return Measurement(f"{source}: {case['label']}", path, flow, slices, (warning,), loads)


def _case(results: Results, source: str, number: int | None) -> Mapping[str, Any]:
    cases = [
        case
        for case in results.cases
        if case["point"]["direction"] != "both" and case["stack"] != "udp"
    ]
    if not cases:
        raise InputError(f"{source}: a model needs a load of TCP in one direction; there is none")
    if number is None:
        return cases[0]
    if not 1 <= number <= len(cases):
        labels = ", ".join(f"{place} {case['label']}" for place, case in enumerate(cases, 1))
        raise InputError(f"--connection {number}: there is no such load; there are {labels}")
    return cases[number - 1]


def _others(results: Results, case: Mapping[str, Any]) -> Iterator[list[_Run]]:
    """The runs of the other TCP loads in the same direction: they took the same path."""
    direction = case["point"]["direction"]
    for other in results.cases:
        is_alike = other["point"]["direction"] == direction and other["stack"] != "udp"
        if other["label"] == case["label"] or not is_alike:
            continue
        own = (pl.col("label") == other["label"]) & (pl.col("status") == "ok")
        runs = results.runs.filter(own)["run"]
        chosen = pl.col("run").is_in(runs.implode())
        tables = {name: results.scan(name).filter(chosen).collect() for name in ("samples", TABLE)}
        answered = tables[TABLE].filter(~pl.col("lost"))["rtt_ms"].drop_nulls()
        if not answered.is_empty():
            least = float(answered.min())  # type: ignore[arg-type]
            yield [_run(tables, run, least) for run in runs]


def _with_bounds(path: Path, other: Path) -> Path:
    """The path whose rate and queue are those that another load showed, where its own did not."""

    def better(own: Quantity, others: Quantity) -> Quantity:
        if own.high is not None:
            return own
        return others if others.high is not None or others.value > own.value else own

    rate = better(path.rate_mbps, other.rate_mbps)
    # A lower bound of the queue is a wait at the rate.
    held = path.queue_bytes.value * rate.value / path.rate_mbps.value
    own = path.queue_bytes if path.queue_bytes.high is not None else Quantity(held, held, None)
    return replace(path, rate_mbps=rate, queue_bytes=better(own, other.queue_bytes))


def _run(tables: Mapping[str, pl.DataFrame], run: int, least_ms: float) -> _Run:
    samples = tables["samples"].filter(pl.col("run") == run).sort("flow", "t_s")
    parts = samples.partition_by("flow", maintain_order=True)
    grid = parts[0]["t_s"].to_numpy() if parts else np.empty(0)
    columns = ("acked_bytes", "retransmits")
    totals = {
        name: sum(
            (np.interp(grid, part["t_s"].to_numpy(), part[name].to_numpy()) for part in parts),
            start=np.zeros(grid.size),
        )
        for name in columns
    }
    probes = tables[TABLE].filter((pl.col("run") == run) & ~pl.col("lost")).sort("t_s")
    at, waits = probes["t_s"].to_numpy(), probes["rtt_ms"].to_numpy() - least_ms
    # A loss is seen a round trip after the packet was dropped.
    from_ = np.searchsorted(at, grid[:-1] - (waits.max(initial=0.0) + least_ms) / 1e3)
    to = np.searchsorted(at, grid[1:])
    around = [waits[a:b].max(initial=-1.0) for a, b in zip(from_, to, strict=True)]
    wait = np.array(around, dtype=float)
    wait[wait < 0] = np.nan
    loaded = (at >= 0) & (at <= (grid[-1] if grid.size else 0.0))
    acked, retransmits = (np.diff(totals[name]) for name in columns)
    repairs = _repairs(parts, grid)
    return _Run(grid[1:], acked, retransmits, repairs, wait, at[loaded], waits[loaded])


def _repairs(parts: Sequence[pl.DataFrame], grid: Floats) -> Flags:
    """For each interval, whether a flow is in recovery at its beginning or end."""
    within = np.zeros(grid.size, dtype=bool)
    for part in parts:
        flags = part["state"].is_in(_REPAIRING).to_numpy().astype(float)
        within |= np.interp(grid, part["t_s"].to_numpy(), flags) > 0
    both: Flags = within[:-1] | within[1:]
    return both


def _packet(flows: pl.DataFrame, source: str) -> int:
    """IP bytes of a full packet, from bytes and segments of the load."""
    segments = float(flows["sent_segments"].sum())
    if segments < 1:
        raise InputError(f"{source}: the load sent nothing")
    return round(float(flows["sent_bytes"].sum()) / segments) + _HEADERS


def _path(
    runs: Sequence[_Run], idle: Floats, least_ms: float, packet: int, samples: pl.DataFrame
) -> tuple[Path, str]:
    """The path, and what limited the load."""
    waits = np.concatenate([run.waits_ms for run in runs])
    level_ms = losses.longest(waits) if waits.size > 2 else 0.0
    threshold = max(_LEAST_BUSY_MS, _BUSY_SHARE * level_ms)
    bins = np.concatenate([_bins(run, threshold, packet) for run in runs])
    everything = np.concatenate([_bins(run, -1.0, packet) for run in runs])
    is_busy = bins.size >= _FEWEST_BINS
    rate = middle(bins, _LEAST_ERROR) if is_busy else _at_least(everything)
    both_ways_ms = 2 * _PROBE_BYTES * 8e-3 / rate.value
    base = max(least_ms - both_ways_ms, 0.0)
    delay = Quantity(
        base,
        max(base - _CLOCK_MS, 0.0),
        max(float(np.median(idle)) - both_ways_ms, base) + _CLOCK_MS,
    )
    queue, chance, overflows = _losses(runs, level_ms, rate.value, packet)
    if rate.high is None:
        queue = Quantity(queue.low, queue.low, None)
        rate = replace(rate, most=rate.value * MOST_RATE)
    share_busy = bins.size / max(everything.size, 1)
    return (
        Path(rate, delay, queue, chance, packet),
        _limit(samples, chance.value, overflows, share_busy),
    )


def _at_least(bins: Floats) -> Quantity:
    """A lower bound: the largest rate of some bins in a row, which readings distort little."""
    if not bins.size:
        return Quantity(_LEAST_MBPS, _LEAST_MBPS, None)
    together = min(_FEWEST_BINS, bins.size)
    most = float(np.convolve(bins, np.full(together, 1 / together), "valid").max())
    most = max(most, _LEAST_MBPS)
    return Quantity(most, most, None)


def _bins(run: _Run, threshold_ms: float, packet: int) -> Floats:
    """Mbit/s of IP bytes in half seconds in which every probe waited longer than the threshold."""
    place = (run.t_s // _BIN_S).astype(int)
    found = []
    for number in np.unique(place)[1:-1]:
        own = place == number
        before = run.t_s[np.flatnonzero(own)[0] - 1]
        seconds = run.t_s[own][-1] - before
        inside = (run.probed_s > before) & (run.probed_s <= before + seconds)
        if run.waits_ms[inside].min(initial=_NEVER) > threshold_ms and seconds > 0:
            payload = packet - _HEADERS
            ip_bytes = run.acked[own].sum() / payload * packet
            found.append(ip_bytes * 8e-6 / seconds + _PROBES_MBPS)
    return np.array(found)


def _losses(
    runs: Sequence[_Run], level_ms: float, mbps: float, packet: int
) -> tuple[Quantity, Quantity, int]:
    """The queue, the share of random losses, and the losses of the full queue."""
    segments = np.concatenate([run.acked for run in runs]) / (packet - _HEADERS)
    lost = np.concatenate([run.retransmits for run in runs])
    wait = np.concatenate([run.wait_ms for run in runs])
    rate = mbps * 1e6 / 8
    slack = losses.slack(packet / rate * 1e3, level_ms)
    known: Flags = ~np.isnan(wait)
    is_high = known & (wait >= level_ms - slack)
    # What a full queue dropped is sent again until the end of the recovery.
    repairs = np.concatenate([run.repairs for run in runs]) | (lost > 0)
    for place in np.flatnonzero(known & repairs)[1:]:
        is_high[place] |= is_high[place - 1] and repairs[place - 1]
    rest = known & ~is_high
    high, low = (round(float((segments + lost)[part].sum())) for part in (is_high, rest))
    overflows, others = (round(float(lost[part].sum())) for part in (is_high, rest))
    held = level_ms / 1e3 * rate
    if held < packet or not losses.is_queue(overflows, max(high, overflows), others, low):
        chance = share(overflows + others, high + low)
        return Quantity(held, held, None), chance, 0
    # A probe is short: it fits where a full packet does not.
    queue = Quantity(held + packet / 2, held - packet / 2, held + 1.5 * packet)
    return queue, share(others, low), overflows


def _policer(
    tables: Mapping[str, pl.DataFrame], runs: int, packet: int
) -> tuple[Quantity, Quantity] | tuple[None, None]:
    """The policer that the test found in at least half of the runs, in IP bytes."""
    found = tables["limits"].filter(pl.col("policer_mbps").is_not_null())
    sums = pl.col("policer_mbps", "policer_bucket_bytes").sum()
    per_run = found.group_by("run").agg(sums, pl.col("flow"))
    if not runs or 2 * per_run.height < runs:
        return None, None
    rates, buckets = [], []
    for run, mbps, size, flows in per_run.iter_rows():
        # Flows that did not show it went through the same one.
        load = tables["flows"].filter(pl.col("run") == run)
        own = float(load.filter(pl.col("flow").is_in(flows))["delivered_bytes"].sum())
        share = max(own, 1.0) / max(float(load["delivered_bytes"].sum()), 1.0)
        scale = packet / (packet - _HEADERS) / share
        rates.append(mbps * scale)
        buckets.append(max(size * scale, packet))
    rate, bucket = with_errors(float(np.median(rates)), float(np.median(buckets)))
    rates.append((rate.high or rate.value) / _LEAST_USED)
    # The kernel's counters do not show when between two readings the bucket was empty.
    unread = rate.value * 1e6 / 8 * COUNT_S
    buckets += [max(bucket.low - unread, packet), (bucket.high or 0.0) + unread]
    return _including(rate, rates), _including(bucket, buckets)


def _including(quantity: Quantity, values: Sequence[float]) -> Quantity:
    high = quantity.value if quantity.high is None else quantity.high
    return Quantity(quantity.value, min(quantity.low, *values), max(high, *values))


def _is_link(policer: Quantity, path: Path) -> bool:
    """Whether the policer is a short queue at the rate of the link."""
    return path.rate_mbps.high is not None and policer.value > OF_LINK * path.rate_mbps.value


def _fastest(samples: pl.DataFrame) -> float:
    """The largest rate at which data of one flow arrived for a round trip, in most runs."""
    largest = samples.group_by("run").agg(pl.col("delivery_mbps").max())["delivery_mbps"]
    return float(np.median(largest.fill_null(0.0).to_numpy()))


def _policed(path: Path, rate: Quantity, bucket: Quantity | None, fastest: float) -> Path:
    """The path with a policer, to which all losses belong; data arrived at `fastest` Mbit/s."""
    link, queue = path.rate_mbps, path.queue_bytes
    if link.high is None and fastest > link.value:
        held = queue.value * fastest / link.value
        link = Quantity(fastest, fastest, None, fastest * MOST_RATE)
        queue = Quantity(held, held, None)
    return replace(
        path,
        rate_mbps=link,
        queue_bytes=queue,
        loss=Quantity(0.0, 0.0, path.loss.high),
        policer_mbps=rate,
        policer_bytes=bucket,
    )


def _limit(samples: pl.DataFrame, chance: float, overflows: int, busy: float) -> str:
    """What limited the load most of the time, as `weir read` names it."""
    last = samples.sort("t_s").group_by("run", "flow").last()
    times = last.select(
        pl.col("time_rwnd_limited_s", "time_sndbuf_limited_s", "time_busy_s").sum()
    ).row(0)
    receiver, buffer, whole = (float(time or 0.0) for time in times)
    if receiver > _MOSTLY * whole > 0:
        return "receiver-window"
    if buffer > _MOSTLY * whole > 0:
        return "send-buffer"
    if busy > _MOSTLY:
        return "path-capacity"
    if overflows:
        return "congestion"
    return "random-loss" if chance > 0 else "unknown"


def _flow(case: Mapping[str, Any], flows: pl.DataFrame, stack: str | None, limit: str) -> Flow:
    """One of the flows of the load, as the mean over flows and repeats."""
    measure = case["scenario"]["measure"]
    means = flows.select(
        pl.col("goodput_mbps", "rtt_ms_p50", "rtt_ms_p95", "rtt_ms_max", "retransmit_ratio").mean()
    ).row(0, named=True)
    streams = len(case["scenario"]["flow"])
    keys = {"measure.warmup": str(measure["warmup"])}
    if streams > 1:
        keys["flow.0.count"] = str(streams)
    return Flow(
        case["label"],
        stack or case["stack"],
        False,
        float(flows["end_s"].max()),  # type: ignore[arg-type]
        round(float(flows["delivered_bytes"].mean())),  # type: ignore[arg-type]
        means["goodput_mbps"] or 0.0,
        means["rtt_ms_p50"] or 0.0,
        means["rtt_ms_p95"] or means["rtt_ms_max"] or 0.0,
        means["retransmit_ratio"] or 0.0,
        limit,
        keys,
    )


def _slices(samples: pl.DataFrame) -> pl.DataFrame:
    """The first flow of a run over time, in the columns of table `slices` that reports use."""
    own = samples.filter(pl.col("flow") == 0).sort("t_s")
    return own.select("t_s", "goodput_mbps", pl.col("srtt_ms").alias("rtt_ms_max"))
