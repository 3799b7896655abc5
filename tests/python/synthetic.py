"""Result directories with every table of the schema, from a fluid model small enough to read.

The numbers are plausible and nothing more: what is tested is how they are drawn and told.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

MSS = 1448
RATE_MBPS = 10.0
RTT_S = 0.04
BDP = RATE_MBPS * 1e6 / 8 * RTT_S


@dataclass(frozen=True)
class Spec:
    """What is to be made up."""

    stacks: Sequence[str] = ("reno", "cubic", "bbr")
    repeat: int = 10
    flows: int = 1
    duration_s: float = 60.0
    interval_s: float = 0.1
    sweep: Mapping[str, Sequence[str]] = field(default_factory=dict)
    samples: bool = True
    failed: Mapping[str, str] = field(default_factory=dict)
    """Error by stack and seed, as in `reno, seed 2`: these runs have no rows."""


def write_results(directory: Path, spec: Spec | None = None) -> Path:
    """Writes a complete result directory and returns it."""
    spec = spec or Spec()
    directory.mkdir(parents=True, exist_ok=True)
    cases = _cases(spec)
    tables: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("runs", "flows", "samples", "queues", "links")
    }
    number = 0
    for repeat in range(spec.repeat):
        for case in cases:
            _add_run(tables, spec, case, number, repeat)
            number += 1
    for name, rows in tables.items():
        _frame(name, rows).write_parquet(directory / f"{name}.parquet")
    pl.DataFrame(schema=_EVENTS).write_parquet(directory / "events.parquet")
    pl.DataFrame(schema=_REQUESTS).write_parquet(directory / "requests.parquet")
    text = json.dumps(_manifest(spec, cases), indent=2)
    (directory / "manifest.json").write_text(text, encoding="utf-8")
    return directory


_EVENTS = {
    "run": pl.UInt32,
    "t_s": pl.Float64,
    "flow": pl.UInt32,
    "link": pl.UInt32,
    "kind": pl.String,
    "seq": pl.UInt64,
    "len": pl.UInt32,
    "detail": pl.String,
}
_REQUESTS = {
    "run": pl.UInt32,
    "flow": pl.UInt32,
    "request": pl.UInt64,
    "t_s": pl.Float64,
    "latency_ms": pl.Float64,
}
_SAMPLES = {
    "run": pl.UInt32,
    "flow": pl.UInt32,
    "t_s": pl.Float64,
    "cwnd_bytes": pl.UInt64,
    "ssthresh_bytes": pl.UInt64,
    "bytes_in_flight": pl.UInt64,
    "srtt_ms": pl.Float64,
    "rtt_ms": pl.Float64,
    "rto_ms": pl.Float64,
    "pacing_mbps": pl.Float64,
    "goodput_mbps": pl.Float64,
    "retransmits": pl.UInt64,
    "state": pl.String,
    "phase": pl.String,
}
_QUEUES = {
    "run": pl.UInt32,
    "link": pl.UInt32,
    "t_s": pl.Float64,
    "packets": pl.UInt64,
    "bytes": pl.UInt64,
    "queue_delay_ms": pl.Float64,
    "drops": pl.UInt64,
    "marks": pl.UInt64,
    "utilisation": pl.Float64,
}
_SCHEMAS: dict[str, dict[str, Any]] = {"samples": _SAMPLES, "queues": _QUEUES}


def _frame(name: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    if name in _SCHEMAS:
        return pl.DataFrame(rows, schema=_SCHEMAS[name])
    return pl.DataFrame(
        rows, infer_schema_length=None, schema_overrides={"run": pl.UInt32, "error": pl.String}
    )


def _points(spec: Spec) -> list[dict[str, str]]:
    points: list[dict[str, str]] = [{}]
    for key, values in spec.sweep.items():
        points = [{**point, key: value} for point in points for value in values]
    return points


def _cases(spec: Spec) -> list[dict[str, Any]]:
    return [
        {
            "label": ", ".join([stack, *(f"{k}={v}" for k, v in point.items())]),
            "series": stack,
            "stack": stack if "/" in stack else f"rack/{stack}",
            "point": point,
            "scenario": {
                "name": "compare",
                "description": "",
                "topology": {"kind": "dumbbell", "rate": "10mbit", "rtt": "40ms", "queue": "1bdp"},
                "flow": [{"stack": f"rack/{stack}", "count": spec.flows, "start_jitter": "100ms"}],
                "measure": {
                    "duration": f"{spec.duration_s:g}s",
                    "warmup": f"{spec.duration_s / 10:g}s",
                    "sample_interval": "100ms",
                    "repeat": spec.repeat,
                    "seed": 1,
                },
            },
        }
        for stack in spec.stacks
        for point in _points(spec)
    ]


def _manifest(spec: Spec, cases: list[dict[str, Any]]) -> dict[str, Any]:
    planned = len(cases) * spec.repeat
    sweep = " ".join(f"--sweep {key}={','.join(values)}" for key, values in spec.sweep.items())
    return {
        "schema": 1,
        "name": "compare",
        "command": f"weir compare {' '.join(spec.stacks)} --rate 10mbit --rtt 40ms --queue 1bdp "
        f"--duration {spec.duration_s:g}s --repeat {spec.repeat} --seed 1 {sweep}".strip(),
        "created": "2026-11-21T03:22:10Z",
        "version": "0.1.0",
        "complete": not spec.failed,
        "runs": {
            "planned": planned,
            "ok": planned - len(spec.failed),
            "failed": dict(spec.failed),
        },
        "repeat": spec.repeat,
        "seeds": list(range(1, spec.repeat + 1)),
        "sweep": list(spec.sweep),
        "cases": cases,
        "health": {"verdict": "good", "wall_s": 1.0},
        "host": {"system": "Linux", "cores": 2},
    }


def _add_run(
    tables: dict[str, list[dict[str, Any]]],
    spec: Spec,
    case: dict[str, Any],
    number: int,
    repeat: int,
) -> None:
    seed = repeat + 1
    error = spec.failed.get(f"{case['label']}, seed {seed}")
    row = {
        "run": number,
        "label": case["label"],
        "stack": case["stack"],
        "repeat": repeat,
        "seed": seed,
        "status": "ok" if error is None else "failed",
        "error": error,
        **{key: case["point"].get(key) for key in spec.sweep},
        "jain_index": None,
        "utilisation": None,
        "goodput_mbps": None,
        "throughput_mbps": None,
        "events": 100_000,
        "data_packets": 50_000,
        "trace_hash": _luck(case["label"], seed).randbytes(8).hex(),
        "sim_s": spec.duration_s,
    }
    tables["runs"].append(row)
    if error is not None:
        return
    world = _World(spec, case, _luck(case["label"], seed))
    world.run(number, tables)
    row["utilisation"] = world.utilisation
    row["goodput_mbps"] = sum(map(_mean, world.good))
    row["throughput_mbps"] = sum(map(_mean, world.good)) * 1500 / MSS
    row["jain_index"] = world.jain if spec.flows > 1 else None


class _World:
    """Windows that share one bottleneck, stepped at the sampling interval."""

    def __init__(self, spec: Spec, case: dict[str, Any], luck: random.Random) -> None:
        self.spec, self.case, self.luck = spec, case, luck
        self.kind = case["stack"].rpartition("/")[2]
        queue = case["point"].get("topology.queue", "1bdp")
        self.room = float(queue.removesuffix("bdp")) * BDP
        self.loss = float(case["point"].get("topology.forward.loss", "0%").removesuffix("%")) / 100
        self.cwnd = [10.0 * MSS * luck.uniform(0.8, 1.6) for _ in range(spec.flows)]
        self.ssthresh: list[float | None] = [None] * spec.flows
        self.good: list[list[float]] = [[] for _ in range(spec.flows)]
        self.delays: list[float] = []
        self.drops = 0

    def run(self, number: int, tables: dict[str, list[dict[str, Any]]]) -> None:
        steps = round(self.spec.duration_s / self.spec.interval_s)
        for step in range(1, steps + 1):
            t_s = step * self.spec.interval_s
            delay = self._step(t_s)
            if self.spec.samples:
                tables["queues"].append(self._queue_row(number, t_s, delay))
                tables["samples"].extend(
                    self._sample_row(number, flow, t_s, delay) for flow in range(self.spec.flows)
                )
        tables["flows"].extend(self._flow_row(number, flow) for flow in range(self.spec.flows))
        tables["links"].append(self._link_row(number))

    @property
    def utilisation(self) -> float:
        return min(1.0, sum(map(_mean, self.good)) * 1500 / MSS / RATE_MBPS)

    @property
    def jain(self) -> float:
        x = [_mean(values) for values in self.good]
        return sum(x) ** 2 / (len(x) * sum(value * value for value in x))

    def _step(self, t_s: float) -> float:
        total = sum(self.cwnd)
        queued = min(max(0.0, total - BDP), self.room)
        delay = queued / (RATE_MBPS * 1e6 / 8)
        rtt = RTT_S + delay
        carried = min(RATE_MBPS * MSS / 1500, total * 8 / rtt / 1e6)
        for flow, cwnd in enumerate(self.cwnd):
            self.good[flow].append(carried * cwnd / total * self.luck.uniform(0.985, 1.015))
            self._adapt(flow, t_s, rtt, overflow=total > BDP + self.room)
        self.delays.append(delay * 1000)
        return delay

    def _adapt(self, flow: int, t_s: float, rtt: float, *, overflow: bool) -> None:
        cwnd, limit = self.cwnd[flow], self.ssthresh[flow]
        share = BDP / self.spec.flows
        if self.kind == "bbr":
            wave = 1.15 if math.sin(t_s * 4) > 0.8 else 1.0
            self.cwnd[flow] = min(cwnd * 1.5, share * (0.98 if t_s % 10 < 9.8 else 0.2) * wave)
        elif (overflow and self.luck.random() < 0.6) or self.luck.random() < self.loss * 8:
            self.drops += 1
            self.ssthresh[flow] = cwnd * (0.5 if self.kind == "reno" else 0.7)
            self.cwnd[flow] = max(2.0 * MSS, self.ssthresh[flow] or 0.0)
        elif limit is None:
            self.cwnd[flow] = cwnd * 2 ** (self.spec.interval_s / rtt / 2)
        else:
            steep = 1.0 if self.kind == "reno" else 1.6
            self.cwnd[flow] = cwnd + steep * MSS * self.spec.interval_s / rtt

    def _sample_row(self, number: int, flow: int, t_s: float, delay: float) -> dict[str, Any]:
        limit = self.ssthresh[flow]
        rtt_ms = (RTT_S + delay) * 1000
        return {
            "run": number,
            "flow": flow,
            "t_s": t_s,
            "cwnd_bytes": round(self.cwnd[flow]),
            "ssthresh_bytes": None if limit is None else round(limit),
            "bytes_in_flight": round(self.cwnd[flow] * 0.98),
            "srtt_ms": rtt_ms,
            "rtt_ms": rtt_ms * self.luck.uniform(1.0, 1.02),
            "rto_ms": 240.0,
            "pacing_mbps": 10.0 if self.kind == "bbr" else None,
            "goodput_mbps": self.good[flow][-1],
            "retransmits": self.drops,
            "state": "open",
            "phase": "slow_start" if limit is None else "avoidance",
        }

    def _queue_row(self, number: int, t_s: float, delay: float) -> dict[str, Any]:
        size = round(delay * RATE_MBPS * 1e6 / 8)
        return {
            "run": number,
            "link": 0,
            "t_s": t_s,
            "packets": size // 1500,
            "bytes": size,
            "queue_delay_ms": delay * 1000,
            "drops": self.drops,
            "marks": 0,
            "utilisation": min(1.0, sum(good[-1] for good in self.good) / RATE_MBPS * 1.03),
        }

    def _flow_row(self, number: int, flow: int) -> dict[str, Any]:
        good, measured = _mean(self.good[flow]), self.spec.duration_s * 0.9
        sent = round(good * 1e6 / 8 * measured / MSS)
        waiting = min(0.4, self.loss * 6) * measured
        return {
            "run": number,
            "flow": flow,
            "name": f"{self.kind}-{flow}",
            "stack": self.case["stack"],
            "start_s": self.luck.uniform(0, 0.1),
            "end_s": self.spec.duration_s,
            "fct_s": None,
            "completed": True,
            "failure": None,
            "delivered_bytes": sent * MSS,
            "goodput_mbps": good,
            "throughput_mbps": good * 1500 / MSS,
            "share": good / RATE_MBPS,
            "sent_segments": sent + self.drops,
            "sent_bytes": sent * MSS,
            "retransmits": self.drops,
            "retransmits_fast": self.drops,
            "retransmits_rto": 0,
            "retransmits_tlp": 0,
            "retransmits_spurious": 0,
            "retransmit_ratio": self.drops / (sent + self.drops),
            "loss_ratio": self.loss,
            "timeouts": 0,
            **_spread("rtt_ms", [RTT_S * 1000 + delay for delay in self.delays]),
            **_spread("queue_delay_ms", self.delays),
            "cwnd_bytes_mean": self.cwnd[flow],
            "cwnd_bytes_max": round(self.cwnd[flow]),
            "time_cwnd_limited_s": measured - waiting,
            "time_rwnd_limited_s": 0.0,
            "time_app_limited_s": 0.0,
            "time_rto_s": waiting,
        }

    def _link_row(self, number: int) -> dict[str, Any]:
        return {
            "run": number,
            "link": 0,
            "name": "bottleneck",
            "monitored": True,
            "capacity_mbps": RATE_MBPS,
            "utilisation": self.utilisation,
            "offered_packets": 50_000 + self.drops,
            "delivered_packets": 50_000,
            "delivered_bytes": 50_000 * 1500,
            "dropped_queue": self.drops,
            "dropped_loss": 0,
            "dropped_aqm": 0,
            "corrupted": 0,
            "duplicated": 0,
            "reordered": 0,
            "queue_packets_mean": _mean(self.delays) * 0.83,
            "queue_packets_max": 33,
            **_spread("queue_delay_ms", self.delays),
        }


def _luck(label: str, seed: int) -> random.Random:
    return random.Random(f"{label} {seed}")  # noqa: S311 - nothing here is secret


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _spread(name: str, values: Sequence[float]) -> dict[str, float | int | None]:
    ordered = sorted(values)
    ranks = {f"{name}_p{p}": ordered[math.ceil(len(ordered) * p / 100) - 1] for p in (50, 95, 99)}
    return {
        f"{name}_mean": _mean(values),
        **ranks,
        f"{name}_min": ordered[0],
        f"{name}_max": ordered[-1],
        f"{name.removesuffix('_ms')}_samples": len(values),
    }
