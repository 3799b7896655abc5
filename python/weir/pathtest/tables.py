"""The record of a run as the tables of a result directory."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

import polars as pl

from weir.dynamics.fairness import jain
from weir.probes import marks
from weir.probes.datagrams import HEADERS, LENGTH
from weir.probes.load import Point
from weir.probes.record import Flow, Record, Stream
from weir.probes.responsiveness import round_trips_per_minute
from weir.probes.tcp_info import STATES, Reading
from weir.running import runner
from weir.scenario.source import Source
from weir.statistics.requests import percentiles

Tables = dict[str, pl.DataFrame]
Row = dict[str, Any]

PROBES = {
    "t_s": pl.Float64,
    "phase": pl.String,
    "lost": pl.Boolean,
    "rtt_ms": pl.Float64,
    "up_ms": pl.Float64,
    "down_ms": pl.Float64,
}
"""Columns of table `probes`, which only path tests have."""

MARKS = {
    "direction": pl.String,
    "mark": pl.String,
    "sent": pl.UInt32,
    "received": pl.UInt32,
    "received_mark": pl.String,
}
"""Columns of table `marks`, which only path tests have."""

LIMITS = {
    "flow": pl.UInt32,
    "name": pl.String,
    "limit": pl.String,
    "capacity_mbps": pl.Float64,
    "policer_mbps": pl.Float64,
    "policer_burst_bytes": pl.UInt64,
    "policer_bucket_bytes": pl.UInt64,
}
"""Columns of table `limits`: what `weir read` finds in the packets of flows of our transport, and
policers of other loads."""

SUMMARY = {
    **dict.fromkeys(("idle_rtt_ms_p50", "loaded_rtt_ms_p50", "loaded_rtt_ms_p95"), pl.Float64),
    **dict.fromkeys(("loaded_rtt_ms_p99", "queue_up_ms_p50", "queue_down_ms_p50"), pl.Float64),
    **dict.fromkeys(("responsiveness_rpm", "jitter_ms", "probe_loss_ratio"), pl.Float64),
    **dict.fromkeys(("clock_error_ms", "clock_drift_ppm"), pl.Float64),
    **dict.fromkeys(("ecn_up", "ecn_down", "dscp_up", "dscp_down", "limit"), pl.String),
    **dict.fromkeys(("policer_mbps", "policer_burst_bytes"), pl.Float64),
}
"""Columns of `summary` that only path tests have."""

_STRAINED = 0.9
"""Processor time over real time at which the sender may be what limits the rate."""
_UNSENT = 0.02
_HELD = 0.9
"""Goodput over the server's limit from which on it may be what limits the rate."""


def tables(record: Record) -> Tables:
    """All tables of a run, with the columns of a simulated one."""
    flows = [*map(_Tcp(record).row, record.flows), *map(_Udp(record).row, record.streams)]
    for number, flow in enumerate(flows):
        flow["flow"] = number
    samples = [
        {"flow": number, **row}
        for number, flow in enumerate(record.flows)
        for row in _samples(flow, record)
    ]
    numbered = enumerate(record.streams, start=len(record.flows))
    samples += [{"flow": n, **row} for n, stream in numbered for row in _arrivals(stream, record)]
    made = {"flows": flows, "samples": samples}
    found = {
        name: pl.DataFrame(made.get(name, []), schema=empty.schema)
        for name, empty in empty_tables().items()
        if name != "summary"
    }
    found["probes"] = pl.DataFrame(list(_probes(record)), schema=PROBES)
    found["marks"] = pl.DataFrame(list(_marks(record)), schema=MARKS)
    found["limits"] = pl.DataFrame(list(_limits(record)), schema=LIMITS)
    summary = _summary(record, flows, found["probes"], found["limits"])
    schema: dict[str, Any] = {**empty_tables()["summary"].schema, **SUMMARY}
    return {"summary": pl.DataFrame([summary], schema=schema), **found}


@cache
def empty_tables() -> Tables:
    """The tables of a simulated run, without rows."""
    text = '[topology]\nrate = "1mbit"\nrtt = "10ms"\n[[flow]]\nstack = "reno"\n'
    text += 'workload = { kind = "bulk" }\n[measure]\nduration = "100ms"\nwarmup = "0s"\n'
    scenario = Source(text, "columns").at({})
    return {name: table.clear() for name, table in runner.execute(scenario, 1).items()}


class _Tcp:
    """Rows of table `flows` about TCP and our transport, in the measured interval."""

    def __init__(self, record: Record) -> None:
        self._order = record.order
        self._from, self._to = _interval(record)

    def row(self, flow: Flow) -> Row:
        """One flow."""
        seconds = (self._to - self._from) / 1e9
        delivered = _at(flow.log, self._to) - _at(flow.log, self._from)
        inside = [reading for t, reading in flow.samples if self._from <= t <= self._to]
        rtts = [reading.srtt_us / 1e3 for reading in inside if reading.srtt_us]
        return {
            "name": flow.name,
            "stack": self._order.stack_name,
            "start_s": 0.0,
            "end_s": self._order.duration_s,
            "completed": flow.failure is None,
            "failure": flow.failure,
            "delivered_bytes": round(delivered),
            "goodput_mbps": delivered * 8 / 1e6 / seconds,
            **_counts(inside, seconds),
            **_spread("rtt_ms", rtts),
            "rtt_ms_min": min(rtts, default=None),
            "rtt_samples": len(rtts),
            "queue_delay_samples": 0,
        }


def _counts(inside: Sequence[Reading], seconds: float) -> Row:
    """What the sender counted between the first and the last reading."""
    if len(inside) < 2:
        nothing = dict.fromkeys(("sent_segments", "sent_bytes", "retransmits"), 0)
        return {**nothing, "throughput_mbps": 0.0, "retransmit_ratio": 0.0}
    first, last = inside[0], inside[-1]
    segments = last.segments - first.segments
    retransmits = last.retransmits - first.retransmits
    timeouts = None
    if last.timeouts is not None and first.timeouts is not None:
        timeouts = last.timeouts - first.timeouts
    return {
        "throughput_mbps": (last.ip_bytes - first.ip_bytes) * 8 / 1e6 / seconds,
        "sent_segments": segments,
        "sent_bytes": last.sent_bytes - first.sent_bytes,
        "retransmits": retransmits,
        "retransmits_spurious": last.spurious - first.spurious,
        "retransmit_ratio": retransmits / segments if segments else 0.0,
        "timeouts": timeouts,
        "cwnd_bytes_mean": sum(reading.cwnd_bytes for reading in inside) / len(inside),
        "cwnd_bytes_max": max(reading.cwnd_bytes for reading in inside),
        "time_rwnd_limited_s": (last.rwnd_limited_us - first.rwnd_limited_us) / 1e6,
    }


class _Udp:
    """Rows of table `flows` about datagrams at a rate, over the whole load."""

    def __init__(self, record: Record) -> None:
        self._order = record.order

    def row(self, stream: Stream) -> Row:
        """One stream."""
        seconds = self._order.duration_s
        delays = [delay / 1e6 for delay in stream.delays_ns]
        lost = max(0, stream.sent - stream.refused - stream.received)
        offered = max(1, stream.sent - stream.refused)
        return {
            "name": stream.name,
            "stack": "udp",
            "start_s": 0.0,
            "end_s": seconds,
            "completed": True,
            "delivered_bytes": stream.bytes,
            "goodput_mbps": stream.bytes * 8 / 1e6 / seconds,
            "throughput_mbps": stream.sent * (LENGTH + HEADERS) * 8 / 1e6 / seconds,
            "sent_segments": stream.sent,
            "sent_bytes": stream.sent * LENGTH,
            "retransmits": 0,
            "retransmits_spurious": 0,
            "retransmit_ratio": 0.0,
            "loss_ratio": lost / offered,
            "rtt_samples": 0,
            **_spread("delay_ms", delays),
            "queue_delay_samples": 0,
            "time_rwnd_limited_s": 0.0,
        }


def _samples(flow: Flow, record: Record) -> Iterator[Row]:
    """The readings of a flow; goodput is what was acknowledged since the one before."""
    before_t, before_bytes = record.began_ns, 0
    for t, reading in flow.samples:
        if t <= before_t:
            continue
        goodput = (reading.acked_bytes - before_bytes) * 8 / 1e6 / ((t - before_t) / 1e9)
        before_t, before_bytes = t, reading.acked_bytes
        slow_start = reading.ssthresh_bytes is None or reading.cwnd_bytes < reading.ssthresh_bytes
        yield {
            "t_s": (t - record.began_ns) / 1e9,
            "cwnd_bytes": reading.cwnd_bytes,
            "ssthresh_bytes": reading.ssthresh_bytes,
            "bytes_in_flight": reading.bytes_in_flight,
            "srtt_ms": reading.srtt_us / 1e3 if reading.srtt_us else None,
            "rttvar_ms": reading.rttvar_us / 1e3 if reading.srtt_us else None,
            "rto_ms": reading.rto_us / 1e3,
            "pacing_mbps": _mbps(reading.pacing_bytes_per_s),
            "delivery_mbps": _mbps(reading.delivery_bytes_per_s),
            "goodput_mbps": goodput,
            "retransmits": reading.retransmits,
            "acked_bytes": reading.acked_bytes,
            "time_busy_s": _seconds(reading.busy_us),
            "time_rwnd_limited_s": reading.rwnd_limited_us / 1e6,
            "time_sndbuf_limited_s": _seconds(reading.sndbuf_limited_us),
            "state": STATES[reading.state],
            "phase": "slow_start" if slow_start else "congestion_avoidance",
        }


def _arrivals(stream: Stream, record: Record) -> Iterator[Row]:
    """Goodput of datagrams in steps of 100 ms."""
    step = 100_000_000
    before = 0.0
    for place in range(int(record.order.duration_s * 10)):
        total = _at(stream.log, record.began_ns + (place + 1) * step)
        new, before = total - before, total
        yield {
            "t_s": (place + 1) / 10,
            "cwnd_bytes": 0,
            "bytes_in_flight": 0,
            "rto_ms": 0.0,
            "goodput_mbps": new * 8 / 1e6 / 0.1,
            "retransmits": 0,
            "acked_bytes": round(total),
            "state": "open",
            "phase": "udp",
        }


def _marks(record: Record) -> Iterator[Row]:
    for count in record.marks:
        yield {
            "direction": count.direction,
            "mark": marks.name(count.mark),
            "sent": count.sent,
            "received": 0 if count.seen is None else count.count,
            "received_mark": None if count.seen is None else marks.name(count.seen),
        }


def _limits(record: Record) -> Iterator[Row]:
    names = [flow.name for flow in record.flows] + [stream.name for stream in record.streams]
    for limit in record.limits:
        yield {"name": names[limit.flow], **asdict(limit)}


def _probes(record: Record) -> Iterator[Row]:
    """Each probe that was sent; its one-way delays split the smallest round trip in halves."""
    for probe in record.prober.probes:
        if probe.is_refused:
            continue
        row: Row = {"t_s": (probe.sent - record.began_ns) / 1e9, "lost": probe.is_lost}
        row["phase"] = (
            "idle"
            if probe.sent < record.began_ns
            else "load"
            if probe.sent <= record.load_end_ns
            else "after"
        )
        if not probe.is_lost:
            row["rtt_ms"] = probe.rtt_ns / 1e6
            if record.clocks is not None:
                offset = record.clocks.offset_at(probe.sent)
                row["up_ms"] = (probe.received - probe.sent - offset) / 1e6
                row["down_ms"] = (probe.returned - probe.answered + offset) / 1e6
        yield row


def _summary(
    record: Record, flows: Sequence[Row], probes: pl.DataFrame, limits: pl.DataFrame
) -> Row:
    warmup_s, end_s = record.order.warmup_s, record.order.duration_s
    loaded = probes.filter(pl.col("t_s").is_between(warmup_s, end_s))
    idle = probes.filter(pl.col("phase") == "idle")
    goodputs = [flow["goodput_mbps"] for flow in flows]
    late = [t / 1e6 for t in record.prober.late_ns]
    clocks = record.clocks
    return {
        "jain_index": jain(goodputs) if len(goodputs) > 1 else None,
        "goodput_mbps": sum(goodputs),
        "throughput_mbps": sum(flow["throughput_mbps"] for flow in flows),
        "events": 0,
        "data_packets": sum(stream.received for stream in record.streams),
        "trace_hash": _digest(record),
        "sim_s": end_s,
        "health": _health(record, flows),
        "late_ms_p50": _percentile(late, 50),
        "late_ms_p99": _percentile(late, 99),
        "late_ms_max": max(late, default=None),
        "on_time_ratio": sum(t <= 1 for t in late) / len(late) if late else None,
        "unasked_drops": record.dropped + sum(stream.dropped for stream in record.streams),
        "cpu_ratio": record.cpu_ratio,
        "idle_rtt_ms_p50": _percentile(idle["rtt_ms"], 50),
        "loaded_rtt_ms_p50": _percentile(loaded["rtt_ms"], 50),
        "loaded_rtt_ms_p95": _percentile(loaded["rtt_ms"], 95),
        "loaded_rtt_ms_p99": _percentile(loaded["rtt_ms"], 99),
        "queue_up_ms_p50": _above_least(probes["up_ms"], loaded["up_ms"]),
        "queue_down_ms_p50": _above_least(probes["down_ms"], loaded["down_ms"]),
        "responsiveness_rpm": _rpm(record),
        "jitter_ms": max((stream.jitter_ns / 1e6 for stream in record.streams), default=None),
        "probe_loss_ratio": loaded["lost"].mean(),
        "clock_error_ms": clocks.error_ns / 1e6 if clocks else None,
        "clock_drift_ppm": clocks.drift * 1e6 if clocks else None,
        **_verdicts(record, limits),
    }


def _verdicts(record: Record, limits: pl.DataFrame) -> Row:
    """What the path does to marks, what limited the flows, and the slowest policer."""
    verdicts: Row = {
        f"{kind}_{direction}": marks.verdict(record.marks, direction, ecn=kind == "ecn")
        for kind in ("ecn", "dscp")
        for direction in ("up", "down")
    }
    verdicts["limit"] = ", ".join(dict.fromkeys(limits["limit"].drop_nulls())) or None
    policed = limits.filter(pl.col("policer_mbps").is_not_null()).sort("policer_mbps")
    for name in ("policer_mbps", "policer_burst_bytes"):
        verdicts[name] = None if policed.is_empty() else policed[name][0]
    return verdicts


def _rpm(record: Record) -> float | None:
    start, end = _interval(record)
    foreign = [probe for probe in record.foreign_ns if start <= probe[0] <= end]
    return round_trips_per_minute(
        [handshake / 1e6 for _, handshake, _ in foreign],
        [answer / 1e6 for _, _, answer in foreign],
        [latency / 1e6 for began, latency in record.loaded_ns if start <= began <= end],
    )


def _health(record: Record, flows: Sequence[Row]) -> str:
    """What may have falsified the run."""
    refused = sum(probe.is_refused for probe in record.prober.probes)
    if refused:
        return f"a packet filter of this machine dropped {refused} probes before the path"
    if record.clocks is None:
        return "no probe was answered: does UDP reach the server?"
    if record.cpu_ratio > _STRAINED:
        return f"this process used {record.cpu_ratio:.0%} of a processor: it may limit the rate"
    for end, count in zip(("this machine", "the server"), record.refused, strict=True):
        if count:
            return f"a packet filter of {end} dropped {count} datagrams before the path"
    if record.dropped:
        return f"the receiving machines dropped {record.dropped} datagrams"
    if record.flows and (allowed := record.allowed_bps) is not None:
        for direction in ("up", "down"):
            rates = [row["goodput_mbps"] for row in flows if row["name"].startswith(direction)]
            if sum(rates) * 1e6 > _HELD * allowed:
                limit = f"{allowed / 1e6:g} Mbit/s (--max-rate)"
                return f"the server's limit of {limit} held the load {direction}, and not the path"
    return next(_unsent(record), "good")


def _unsent(record: Record) -> Iterator[str]:
    """Why fewer datagrams of a load at a rate were sent or received than the path allows."""
    order = record.order
    for stream in record.streams:
        planned = (order.udp_bps or 0) * order.duration_s / ((LENGTH + HEADERS) * 8)
        if stream.sent - stream.refused < (1 - _UNSENT) * planned:
            yield f"{stream.name}: the sender did not keep to the rate"
        if stream.refused:
            yield f"{stream.name}: the sending machine dropped {stream.refused} datagrams"
        if stream.dropped:
            yield f"{stream.name}: the receiving machine dropped {stream.dropped} datagrams"


def _digest(record: Record) -> str:
    """A hash over the times of all answers: no two runs on a real path are the same."""
    digest = hashlib.sha256()
    for probe in record.prober.probes:
        digest.update(f"{probe.sent} {probe.returned}\n".encode())
    return digest.hexdigest()[:16]


def _interval(record: Record) -> tuple[int, int]:
    """The measured interval on the client's clock, in ns."""
    order = record.order
    return (
        record.began_ns + round(order.warmup_s * 1e9),
        min(record.load_end_ns, record.began_ns + round(order.duration_s * 1e9)),
    )


def _at(log: Sequence[Point], t: int) -> float:
    """The bytes received at a time, between two entries of a log."""
    place = bisect_left(log, t, key=lambda point: point[0])
    if place == 0:
        return 0.0
    if place == len(log):
        return float(log[-1][1])
    (before, few), (after, many) = log[place - 1], log[place]
    return few + (many - few) * (t - before) / max(1, after - before)


def _spread(name: str, values: Sequence[float]) -> Mapping[str, float | None]:
    """Mean, percentiles and the largest of values, as columns."""
    return {
        f"{name}_mean": sum(values) / len(values) if values else None,
        **{f"{name}_p{percent}": _percentile(values, percent) for percent in (50, 95, 99)},
        f"{name}_max": max(values, default=None),
    }


def _percentile(values: Sequence[float] | pl.Series, percent: float) -> float | None:
    (found,) = percentiles(values, [percent])
    return found.value


def _above_least(all_: pl.Series, loaded: pl.Series) -> float | None:
    """The median queueing delay of one direction: above the smallest delay of the run."""
    least, median = all_.drop_nulls().min(), _percentile(loaded, 50)
    return None if median is None or not isinstance(least, float) else median - least


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1e6


def _mbps(bytes_per_s: int | None) -> float | None:
    return None if bytes_per_s is None else bytes_per_s * 8 / 1e6
