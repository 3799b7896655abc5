"""A run of another program, and its tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from weir.dynamics.fairness import jain
from weir.pathtest.tables import LIMITS, MARKS, PROBES, SUMMARY, empty_tables
from weir.statistics.intervals import percentile

UNKNOWN = "unknown"
"""The congestion control of a flow that its file does not name."""


@dataclass(frozen=True)
class Sample:
    """What was measured of a flow at a time; None is what was not."""

    t_s: float
    goodput_mbps: float | None
    rtt_ms: float | None = None
    cwnd_bytes: float | None = None
    retransmits: int | None = None
    acked_bytes: float | None = None


@dataclass(frozen=True)
class ImportedFlow:
    """A flow of the run."""

    name: str
    stack: str
    start_s: float
    end_s: float
    delivered_bytes: float
    samples: Sequence[Sample] = ()
    sent_bytes: float | None = None
    segments: int | None = None
    retransmits: int | None = None
    rtt_ms_mean: float | None = None

    @property
    def goodput_mbps(self) -> float:
        """Over its time."""
        return self.delivered_bytes * 8e-6 / max(self.end_s - self.start_s, 1e-9)


@dataclass(frozen=True)
class ImportedRun:
    """One file."""

    program: str
    flows: Sequence[ImportedFlow]
    pings_ms: Sequence[tuple[float, float]] = field(default_factory=tuple)
    """Times in seconds, and round trips of probes."""

    @property
    def end_s(self) -> float:
        """When its last flow ended."""
        return max(flow.end_s for flow in self.flows)

    @property
    def stack(self) -> str:
        """The congestion controls of its flows."""
        return ", ".join(dict.fromkeys(flow.stack for flow in self.flows))


def tables(run: ImportedRun) -> dict[str, pl.DataFrame]:
    """All tables of a run, with the columns of a path test."""
    made = {
        "flows": [{"flow": n, **_flow(flow)} for n, flow in enumerate(run.flows)],
        "samples": [
            {"flow": n, **row} for n, flow in enumerate(run.flows) for row in _samples(flow)
        ],
    }
    found = {
        name: pl.DataFrame(made.get(name, []), schema=empty.schema)
        for name, empty in empty_tables().items()
        if name != "summary"
    }
    probes = [{"t_s": t, "phase": "loaded", "lost": False, "rtt_ms": ms} for t, ms in run.pings_ms]
    found["probes"] = pl.DataFrame(probes, schema=PROBES)
    found["marks"] = pl.DataFrame([], schema=MARKS)
    found["limits"] = pl.DataFrame([], schema=LIMITS)
    schema: dict[str, Any] = {**empty_tables()["summary"].schema, **SUMMARY}
    return {"summary": pl.DataFrame([_summary(run)], schema=schema), **found}


def _flow(flow: ImportedFlow) -> Mapping[str, Any]:
    rtts = [one.rtt_ms for one in flow.samples if one.rtt_ms is not None]
    windows = [one.cwnd_bytes for one in flow.samples if one.cwnd_bytes is not None]
    mean = sum(rtts) / len(rtts) if rtts else flow.rtt_ms_mean
    segments, retransmits = flow.segments, flow.retransmits
    return {
        "name": flow.name,
        "stack": flow.stack,
        "start_s": flow.start_s,
        "end_s": flow.end_s,
        "completed": True,
        "delivered_bytes": round(flow.delivered_bytes),
        "goodput_mbps": flow.goodput_mbps,
        "throughput_mbps": flow.goodput_mbps,
        "sent_segments": segments,
        "sent_bytes": None if flow.sent_bytes is None else round(flow.sent_bytes),
        "retransmits": retransmits,
        "retransmit_ratio": _ratio(retransmits, segments),
        "rtt_ms_min": min(rtts, default=None),
        "rtt_ms_mean": mean,
        "rtt_ms_p50": percentile(rtts, 50),
        "rtt_ms_p95": percentile(rtts, 95),
        "rtt_ms_p99": percentile(rtts, 99),
        "rtt_ms_max": max(rtts, default=None),
        "rtt_samples": len(rtts),
        "cwnd_bytes_mean": sum(windows) / len(windows) if windows else None,
        "cwnd_bytes_max": round(max(windows)) if windows else None,
        "queue_delay_samples": 0,
    }


def _ratio(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def _samples(flow: ImportedFlow) -> Iterator[Mapping[str, Any]]:
    for one in flow.samples:
        if one.goodput_mbps is None:
            continue
        yield {
            "t_s": one.t_s,
            "cwnd_bytes": None if one.cwnd_bytes is None else round(one.cwnd_bytes),
            "srtt_ms": one.rtt_ms,
            "rtt_ms": one.rtt_ms,
            "goodput_mbps": one.goodput_mbps,
            "retransmits": one.retransmits,
            "acked_bytes": None if one.acked_bytes is None else round(one.acked_bytes),
        }


def _summary(run: ImportedRun) -> Mapping[str, Any]:
    goodputs = [flow.goodput_mbps for flow in run.flows]
    pings = [ms for _, ms in run.pings_ms]
    digest = hashlib.sha256(repr(run.flows).encode()).hexdigest()
    return {
        "jain_index": jain(goodputs) if len(goodputs) > 1 else None,
        "goodput_mbps": sum(goodputs),
        "throughput_mbps": sum(goodputs),
        "events": 0,
        "data_packets": sum(flow.segments or 0 for flow in run.flows),
        "trace_hash": digest[:16],
        "sim_s": run.end_s,
        "health": "",
        "loaded_rtt_ms_p50": percentile(pings, 50),
        "loaded_rtt_ms_p95": percentile(pings, 95),
        "loaded_rtt_ms_p99": percentile(pings, 99),
    }
