"""What was measured: a flow, and the path that it took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from weir.estimates.path import Path
from weir.modelling.loads import Load

_UNKNOWN = "unknown"
ASSUMED = "cubic"
"""The controller of a sender of which none is known: Linux's default."""


@dataclass(frozen=True)
class Flow:
    """The flow that measured the path."""

    name: str
    stack: str
    is_assumed: bool
    """Whether nothing says that its controller is `stack`."""
    duration_s: float
    delivered_bytes: int
    goodput_mbps: float
    rtt_ms_p50: float
    rtt_ms_p95: float
    retransmit_ratio: float
    limit: str
    """What limited it most of the time, as `weir read` names it."""
    source_keys: dict[str, str]
    """Keys of the scenario for a sender that is limited by itself or by its receiver."""

    def as_json(self) -> dict[str, Any]:
        """The form of `--json`."""
        return {
            "name": self.name,
            "stack": self.stack,
            "stack_assumed": self.is_assumed,
            "duration_s": self.duration_s,
            "delivered_bytes": self.delivered_bytes,
            "limit": self.limit,
            **{name: getattr(self, name) for name in COMPARED},
        }


COMPARED = {
    "goodput_mbps": ("goodput", "Mbit/s", 1.0),
    "rtt_ms_p50": ("RTT median", "ms", 1.0),
    "rtt_ms_p95": ("RTT P95", "ms", 1.0),
    "retransmit_ratio": ("retransmitted", "%", 100.0),
}
"""What a model should repeat: title, unit, and factor for people."""


@dataclass(frozen=True)
class Measurement:
    """A path, and the flow that measured it if one did."""

    source: str
    path: Path
    flow: Flow | None
    slices: pl.DataFrame
    """The flow's time, in slices."""
    warnings: tuple[str, ...] = ()
    loads: tuple[Load, ...] = ()
    """What other controllers got on the path itself, after that of the flow; empty if unknown."""


def flow_of(row: dict[str, Any], stack: str | None) -> Flow:
    """The flow of a row of `weir read`, whose controller is `stack` or the one found there."""
    stack = stack or _found(row)
    arrow = (row["client"], row["server"])
    limit = row["limit"] or "unknown"
    goodput = row["goodput_mbps"] or 0.0
    duration = row["duration_s"]
    return Flow(
        " → ".join(arrow if row["sender"] == "client" else reversed(arrow)),
        stack or ASSUMED,
        stack is None,
        duration,
        row["delivered_bytes"],
        goodput,
        row["rtt_ms_p50"] or 0.0,
        row["rtt_ms_p95"] or row["rtt_ms_max"] or 0.0,
        row["retransmits"] / max(row["data_packets"], 1),
        limit,
        _source_keys(row, limit, goodput),
    )


def _found(row: dict[str, Any]) -> str | None:
    """The first of those that predict the window: they differ little on such a path."""
    name: str = row["controller"] or _UNKNOWN
    return None if name == _UNKNOWN else name.split(", ")[0]


def _source_keys(row: dict[str, Any], limit: str, goodput: float) -> dict[str, str]:
    if limit == "application" and goodput > 0:
        bits = round(goodput * 1e6)
        return {"flow.0.workload": f"{{ kind = 'rate', rate = '{bits}bit' }}"}
    if limit == "receiver-window" and row["window_bytes_max"]:
        # Linux never offers the last segment of its buffer, which counts the options too.
        kept = row["mss_bytes"] + _TIMESTAMPS
        return {"flow.0.recv_buffer": f"{row['window_bytes_max'] + kept}b"}
    if limit == "send-buffer":
        return {"flow.0.window_limit": str(max(row["flight_bytes_max"] // row["mss_bytes"], 1))}
    if row["window_bytes_max"]:
        # Linux acknowledges every segment until its window has grown to the buffer.
        buffer = max(row["window_bytes_max"], _SPARE * row["flight_bytes_max"])
        return {"flow.0.recv_buffer": f"{buffer}b"}
    return {}


_SPARE = 4
"""How many times what was in flight the window is at least, so that it limits no other sender."""
_TIMESTAMPS = 12
"""Bytes of the option in a segment."""
