"""Windows and data in flight."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import polars as pl

from weir.conform.measures.observed import Observed, is_phase
from weir.dynamics.curves import Array

__all__ = [
    "extreme_window",
    "growth_beyond",
    "growth_in_phase",
    "in_flight_after",
    "largest_growth",
    "mean_window",
    "most_in_flight",
    "reductions_in_a_row",
    "smallest_step",
    "threshold_after",
    "unused_window",
    "window_before_rtt",
    "window_in_phase",
    "window_kept",
    "window_over_flight",
    "window_regained",
]

_SLACK_S = 1e-6


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


def largest_growth(run: Observed, *, rtt_s: float) -> float | None:
    """The largest window over that one RTT before, in congestion avoidance."""
    before, windows = _windows_apart(run, rtt_s)
    return float(np.max(windows / before)) if len(windows) else None


def growth_beyond(run: Observed, *, rtt_s: float, factor: float) -> float | None:
    """By how many segments a window exceeds `factor` times that one RTT before, at most.

    Only in congestion avoidance.
    """
    before, windows = _windows_apart(run, rtt_s)
    return float(np.max(windows - factor * before)) / run.mss if len(windows) else None


def _windows_apart(run: Observed, rtt_s: float) -> tuple[Array, Array]:
    """Windows in congestion avoidance, first one RTT before, then at the time."""
    name = pl.col("phase").cast(pl.String)
    rows = run.samples.filter(name == "congestion_avoidance").select("t_s", "cwnd_bytes")
    times, windows = (rows[one].cast(pl.Float64).to_numpy() for one in rows.columns)
    return windows_apart(times, windows, rtt_s)


def windows_apart(times: Array, windows: Array, rtt_s: float) -> tuple[Array, Array]:
    """Of samples those that have one an RTT before: the windows there, and their own."""
    earlier = np.searchsorted(times, times - rtt_s - _SLACK_S)
    has_earlier = times >= times[:1] + rtt_s if len(times) else np.zeros(0, dtype=bool)
    return windows[earlier[has_earlier]], windows[has_earlier]


def unused_window(run: Observed, *, phase: str) -> float | None:
    """The window minus what is in flight in the first sample of the first `phase`, in segments."""
    spans = run.spans(phase)
    if not spans:
        return None
    window, flight = (run.at(name, spans[0][0]) for name in ("cwnd_bytes", "bytes_in_flight"))
    return None if window is None or flight is None else (window - flight) / run.mss


def growth_in_phase(run: Observed, *, phase: str) -> float | None:
    """The window as the first `phase` ends over that as it begins."""
    spans = run.spans(phase)
    if not spans or spans[0][1] >= run.curve.seen_s:
        return None
    begin, end = spans[0]
    windows = run.column("cwnd_bytes", begin, end - 2 * _SLACK_S)
    return float(windows[-1] / windows[0])


def threshold_after(run: Observed, *, phase: str) -> float | None:
    """The slow-start threshold just after the first `phase`, over the window as it ends."""
    spans = run.spans(phase)
    if not spans or spans[0][1] >= run.curve.seen_s:
        return None
    begin, end = spans[0]
    windows = run.column("cwnd_bytes", begin, end - 2 * _SLACK_S)
    threshold = run.at("ssthresh_bytes", end)
    return None if threshold is None else threshold / float(windows[-1])


def smallest_step(run: Observed) -> float | None:
    """The smallest window over that of the sample before."""
    windows = run.column("cwnd_bytes")
    return float(np.min(windows[1:] / windows[:-1])) if len(windows) > 1 else None


def reductions_in_a_row(run: Observed, *, span_s: float) -> float:
    """The reductions within `span_s` of the first one, that one included.

    A reduction sets the slow-start threshold below the window of the sample before. The delay-based
    end of slow start sets it to the window.
    """
    rows = run.samples.select("t_s", "cwnd_bytes", "ssthresh_bytes").cast(pl.Float64)
    threshold, before = pl.col("ssthresh_bytes"), pl.col("ssthresh_bytes").shift()
    is_new = threshold.is_not_null() & ((threshold != before) | before.is_null())
    is_lower = threshold < 0.95 * pl.col("cwnd_bytes").shift()
    times = rows.filter(is_new & is_lower)["t_s"].to_numpy()
    return float(np.sum(times <= times[0] + span_s)) if len(times) else 0.0


def window_before_rtt(run: Observed) -> float | None:
    """The largest window before the first RTT sample, in segments; None if the first has one."""
    rows = run.samples.with_columns(known=pl.col("rtt_ms").is_not_null().cum_sum())
    windows = rows.filter(known=0)["cwnd_bytes"]
    if windows.is_empty():
        return None
    return float(windows.cast(pl.Float64).to_numpy().max()) / run.mss


def window_kept(run: Observed, *, at_s: float, by_s: float) -> float | None:
    """The window at `by_s` over that at `at_s`."""
    before, after = run.at("cwnd_bytes", at_s), run.at("cwnd_bytes", by_s)
    return after / before if before and after else None


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
