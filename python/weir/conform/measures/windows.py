"""Windows and data in flight."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import polars as pl

from weir.conform.observed import Observed, is_phase

__all__ = [
    "extreme_window",
    "in_flight_after",
    "mean_window",
    "most_in_flight",
    "window_in_phase",
    "window_over_flight",
    "window_regained",
]


def extreme_window(
    run: Observed, *, extreme: Literal["least", "most"], from_s: float = 0.0, to_s: float = math.inf
) -> float | None:
    """The smallest or largest congestion window between two times, in segments."""
    windows = run.column("cwnd_bytes", from_s, to_s) / run.mss
    if not len(windows):
        return None
    return float(windows.min() if extreme == "least" else windows.max())


def mean_window(run: Observed) -> float | None:
    """The time average of the congestion window over the measured interval, in segments."""
    mean = run.flow["cwnd_bytes_mean"]
    return None if mean is None else mean / run.mss


def window_over_flight(run: Observed, *, initial: int) -> float | None:
    """The largest window over the most that was in flight before, at least `initial` segments."""
    rows = run.samples.select("cwnd_bytes", "bytes_in_flight").cast(pl.Float64)
    if rows.is_empty():
        return None
    flight = np.maximum.accumulate(rows["bytes_in_flight"].to_numpy())
    return float(np.max(rows["cwnd_bytes"].to_numpy() / np.maximum(flight, initial * run.mss)))


def window_regained(run: Observed, *, at_s: float) -> float | None:
    """The largest window from `at_s` on over the window at that time."""
    windows = run.column("cwnd_bytes", at_s)
    return float(windows.max() / windows[0]) if len(windows) else None


def window_in_phase(
    run: Observed, *, phase: str, extreme: Literal["least", "most"] = "least"
) -> float | None:
    """The smallest or largest congestion window in a phase, in segments."""
    name = pl.col("phase").cast(pl.String)
    rows = run.samples.filter((name == phase) | name.str.starts_with(f"{phase}_"))
    windows = rows["cwnd_bytes"].cast(pl.Float64).to_numpy() / run.mss
    if not len(windows):
        return None
    return float(windows.min() if extreme == "least" else windows.max())


def in_flight_after(run: Observed, *, phase: str, mbps: float, following: str = "") -> float | None:
    """The most in flight just after a phase ends, minus the BDP, in segments.

    The BDP is the payload rate of the link times the smallest RTT. With `following`, only the
    ends count after which that phase begins.
    """
    found = []
    for (name, _, end), after in zip(run.phases, run.phases[1:], strict=False):
        if is_phase(name, phase) and (not following or is_phase(after[0], following)):
            found.append(run.at("bytes_in_flight", end))
    bdp = _bdp_bytes(run, mbps)
    known = [value for value in found if value is not None]
    return (max(known) - bdp) / run.mss if known and bdp else None


def most_in_flight(run: Observed, *, phase: str, mbps: float) -> float | None:
    """The largest amount in flight in a phase over the BDP, in the phase that reaches least."""
    bdp = _bdp_bytes(run, mbps)
    spans = [span for span in run.spans(phase) if span[1] < run.curve.seen_s]
    peaks = [float(np.max(run.column("bytes_in_flight", *span))) for span in spans]
    return min(peaks) / bdp if peaks and bdp else None


def _bdp_bytes(run: Observed, mbps: float) -> float:
    return mbps * run.payload / 8 * 1e3 * (run.flow["rtt_ms_min"] or 0.0)
