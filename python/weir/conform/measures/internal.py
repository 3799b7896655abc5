"""Internal variables of controllers: columns `cc.NAME` of table `samples`."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal

import numpy as np
import polars as pl

from weir.conform.measures.observed import Observed, is_phase

__all__ = [
    "first_over_bdp",
    "in_flight_above_variable",
    "kept_through",
    "largest_k_error",
    "largest_over_flight",
    "longest_with",
    "threshold_over_pipe",
    "window_at_k",
    "window_beyond_half_bdp",
    "window_over_pipe",
]


def longest_with(run: Observed, *, column: str, from_s: float = 0.0) -> float | None:
    """The longest time during which a variable has a value, from `from_s` on; 0 if it never has."""
    if column not in run.samples.columns:
        return 0.0
    is_late, has_value = pl.col("t_s") >= from_s, pl.col(column).is_not_null()
    rows = run.samples.filter(is_late).select("t_s", has=has_value)
    since, longest = math.inf, 0.0
    for time_s, has in rows.iter_rows():
        since = min(since, time_s) if has else math.inf
        longest = max(longest, time_s - since)
    return longest


def kept_through(run: Observed, *, column: str, phase: str) -> float | None:
    """The smallest value of a variable in a phase and the next one, over that before the phase.

    It is that of the first phase of this name.
    """
    spans = [place for place, span in enumerate(run.phases) if span[0] == phase]
    if not spans or spans[0] == 0 or column not in run.samples.columns:
        return None
    first = spans[0]
    end = run.phases[min(first + 1, len(run.phases) - 1)][2]
    before = run.column(column, *run.phases[first - 1][1:])
    within = run.column(column, run.phases[first][1], end)
    return float(within.min() / before[-1]) if len(before) and len(within) else None


def first_over_bdp(run: Observed, *, column: str, mbps: float) -> float | None:
    """The first value of a variable in bytes over the BDP; infinite if it never has one."""
    values = run.column(column)
    bdp = mbps * run.payload / 8 * 1e3 * (run.flow["rtt_ms_min"] or 0.0)
    if not len(values):
        return math.inf
    return float(values[0]) / bdp if bdp else None


def in_flight_above_variable(
    run: Observed, *, phase: str, following: str, column: str, share: float
) -> float | None:
    """How far the amount in flight exceeds `share` of a variable, as a phase begins, in segments.

    Only times count at which `following` begins after `phase` and the variable has a value.
    """
    found = []
    for one, after in pairwise(run.phases):
        flight, limit = run.at("bytes_in_flight", one[2]), run.at(column, one[2])
        is_wanted = is_phase(one[0], phase) and is_phase(after[0], following)
        if is_wanted and flight is not None and limit is not None:
            found.append((flight - share * limit) / run.mss)
    return max(found, default=None)


def largest_over_flight(run: Observed, *, column: str) -> float | None:
    """The largest value of a variable in bytes over the most that was in flight; 0 without one."""
    values, flight = run.column(column), run.column("bytes_in_flight")
    if not len(values):
        return 0.0
    return float(values.max() / flight.max()) if len(flight) and flight.max() else None


def window_at_k(run: Observed) -> float | None:
    """The window minus CUBIC's `W_max` at the time K of the first epoch, in segments."""
    names = ("t_s", "cwnd_bytes", "cc.k_s", "cc.w_max_segments")
    if not set(names) <= set(run.samples.columns):
        return None
    rows = run.samples.select(names).drop_nulls()
    if rows.is_empty():
        return None
    first = rows.row(0, named=True)
    window = run.at("cwnd_bytes", first["t_s"] + first["cc.k_s"])
    return None if window is None else window / run.mss - first["cc.w_max_segments"]


def window_beyond_half_bdp(run: Observed, *, phase: str, least: int) -> float | None:
    """How far the window is from half the BDP as a phase begins, or above it later, in segments.

    The BDP is the controller's: its bandwidth and its smallest RTT, as they were before the phase.
    A smaller RTT within the phase may lower the window. `least` is the smallest window in segments.
    """
    found = []
    for begin, end in run.spans(phase):
        rate, rtt = (_before(run, name, begin) for name in ("cc.bw_mbps", "cc.min_rtt_ms"))
        windows = run.column("cwnd_bytes", begin, end)[:-1]
        if rate is not None and rtt is not None and len(windows):
            target = max(rate * rtt / 8 * 1e3 / 2, least * run.mss)
            above = (windows - target) / run.mss
            found.append(float(max(np.max(above), -above[0])))
    return max(found) if found else None


def largest_k_error(run: Observed, *, beta: float, c: float) -> float | None:
    """The largest deviation of CUBIC's K from its formula, in seconds.

    RFC 9438 §4.2: K is the cube root of `(W_max - cwnd_epoch) / C`, with `cwnd_epoch = beta W_max`.
    """
    names = ("cc.k_s", "cc.w_max_segments")
    if not set(names) <= set(run.samples.columns):
        return None
    rows = run.samples.select(names).drop_nulls()
    k, w_max = (rows[name].to_numpy() for name in names)
    return float(np.max(np.abs(k - np.cbrt(w_max * (1 - beta) / c)))) if len(k) else None


def window_over_pipe(
    run: Observed, *, phase: str, least: int, when: Literal["within", "after"]
) -> float | None:
    """The largest window within a phase, or that just after it, over half the pipe size.

    The pipe size is that at the phase's begin. Half of it is at least `least` segments.
    """
    spans = run.spans(phase)
    pipe = run.at("cc.pipe_bytes", spans[0][0]) if spans else None
    if pipe is None:
        return None
    begin, end = spans[0]
    within = float(np.max(run.column("cwnd_bytes", begin, end)))
    window = within if when == "within" else run.at("cwnd_bytes", end)
    return None if window is None else window / max(pipe / 2, least * run.mss)


def threshold_over_pipe(run: Observed, *, phase: str) -> float | None:
    """The slow-start threshold just after the first `phase` over the last pipe size in it."""
    spans = run.spans(phase)
    if not spans:
        return None
    begin, end = spans[0]
    pipes, threshold = run.column("cc.pipe_bytes", begin, end), run.at("ssthresh_bytes", end)
    return threshold / float(pipes[-1]) if threshold is not None and len(pipes) else None


def _before(run: Observed, column: str, time_s: float) -> float | None:
    """The last value of a variable before a time."""
    if column not in run.samples.columns:
        return None
    values = run.samples.filter(pl.col("t_s") < time_s)[column].drop_nulls()
    return float(values[-1]) if len(values) else None
