"""Windows from round trip to round trip, by samples alone: what any sender's log has."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import polars as pl

from weir.conform.measures.observed import Observed, Row
from weir.conform.measures.windows import windows_apart
from weir.dynamics.curves import Array

__all__ = [
    "answer_ratio",
    "growth_after_reduction",
    "growth_in_slow_start",
    "in_flight_above_window",
    "mean_datagram_back",
    "shortest_between_reductions",
    "until_delivered",
]

_IP_AND_UDP = 28
"""Bytes of the headers around a datagram, of IPv4."""
_REDUCED = 0.95
"""A smaller window than this share of that of the sample before has been reduced."""


def growth_after_reduction(run: Observed, *, rtt_s: float) -> float | None:
    """The largest growth of the window within one RTT after the first reduction, in bytes.

    A round trip with a reduction in it does not count.
    """
    times, windows = _windows(run)
    reductions = [*_reductions(windows), len(windows)]
    found = []
    for begin, end in pairwise(reductions):
        before, after = windows_apart(times[begin:end], windows[begin:end], rtt_s)
        found += [float(np.max(after - before))] if len(after) else []
    return max(found) if found else None


def growth_in_slow_start(run: Observed, *, rtt_s: float) -> float | None:
    """The largest growth of the window within one RTT, over what was in flight as that RTT began.

    Up to the first reduction. A window that is not filled counts as if it were.
    """
    rows = run.samples.select("t_s", "cwnd_bytes", "bytes_in_flight").drop_nulls()
    times, windows, flight = (rows[name].cast(pl.Float64).to_numpy() for name in rows.columns)
    end = (_reductions(windows) or [len(windows)])[0]
    before, after = windows_apart(times[:end], windows[:end], rtt_s)
    sent, _ = windows_apart(times[:end], np.maximum(windows, flight)[:end], rtt_s)
    return float(np.max((after - before) / sent)) if len(after) else None


def until_delivered(run: Observed) -> float:
    """The time of the first byte that arrived, by the samples; infinite if none did."""
    arrived = run.curve.times_s[run.curve.delivered_mbit > 0]
    return float(arrived[0]) if len(arrived) else math.inf


def answer_ratio(run: Observed) -> float | None:
    """The payload of datagrams that the bottleneck carried over that of its reverse direction."""
    back = _datagrams(run.reverse)
    return _datagrams(run.link) / back if back else None


def mean_datagram_back(run: Observed) -> float | None:
    """The mean payload of the datagrams that came over the reverse of the bottleneck."""
    packets = run.reverse["delivered_packets"]
    return _datagrams(run.reverse) / packets if packets else None


def _datagrams(link: Row) -> float:
    return (link["delivered_bytes"] or 0) - _IP_AND_UDP * (link["delivered_packets"] or 0)


def in_flight_above_window(run: Observed) -> float | None:
    """The most by which what was in flight exceeded the window before the first reduction."""
    rows = run.samples.select("cwnd_bytes", "bytes_in_flight").drop_nulls().cast(pl.Float64)
    windows, flight = (rows[name].to_numpy() for name in rows.columns)
    reductions = _reductions(windows)
    end = reductions[0] if len(reductions) else len(windows)
    return float(np.max(flight[:end] - windows[:end])) if end else None


def shortest_between_reductions(run: Observed, *, from_s: float = 0.0) -> float | None:
    """The shortest time between two reductions of the window; infinite without two."""
    times, windows = _windows(run)
    if not len(windows):
        return None
    at = times[_reductions(windows)]
    gaps = np.diff(at[at >= from_s])
    return float(np.min(gaps)) if len(gaps) else math.inf


def _windows(run: Observed) -> tuple[Array, Array]:
    rows = run.samples.select("t_s", "cwnd_bytes").drop_nulls().cast(pl.Float64)
    return rows["t_s"].to_numpy(), rows["cwnd_bytes"].to_numpy()


def _reductions(windows: Array) -> list[int]:
    """The samples whose window is a reduced one."""
    return [int(n) + 1 for n in (windows[1:] < _REDUCED * windows[:-1]).nonzero()[0]]
