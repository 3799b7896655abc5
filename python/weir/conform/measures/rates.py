"""Goodput, pacing and RTT over time."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from weir.conform.measures.observed import Observed

__all__ = [
    "completion",
    "extreme_of",
    "goodput_share",
    "median_over_least",
    "median_share",
    "rate_per_bin",
    "until_share",
]


def until_share(
    run: Observed, *, share: float, mbps: float, at_s: float, bin_s: float, unit_s: float = 1.0
) -> float:
    """The time from `at_s` to the end of the first bin with this share of a link's payload rate."""
    rates = run.rates(at_s, run.curve.seen_s, bin_s)
    reached = (rates >= share * mbps * run.payload).nonzero()[0]
    return float(reached[0] + 1) * bin_s / unit_s if len(reached) else math.inf


def goodput_share(run: Observed, *, mbps: float, from_s: float = 0.0, to_s: float = 0.0) -> float:
    """Goodput between two times over the payload rate of a link; `to_s` of 0 is the end."""
    return run.curve.rate(from_s, to_s or run.curve.seen_s) / (mbps * run.payload)


def median_share(
    run: Observed, *, column: str, mbps: float, from_s: float, to_s: float = math.inf
) -> float | None:
    """The median of a rate in `samples` over the payload rate of a link."""
    values = run.column(column, from_s, to_s)
    return float(np.median(values)) / (mbps * run.payload) if len(values) else None


def median_over_least(run: Observed, *, from_s: float, to_s: float = math.inf) -> float | None:
    """The median RTT between two times over the smallest of the whole run."""
    values, least = run.column("rtt_ms", from_s, to_s), run.flow["rtt_ms_min"]
    return float(np.median(values)) / least if len(values) and least else None


def rate_per_bin(
    run: Observed, *, extreme: Literal["least", "most"], from_s: float, to_s: float, bin_s: float
) -> float | None:
    """The smallest or largest goodput of a bin between two times, in Mbit/s."""
    rates = run.rates(from_s, to_s, bin_s)
    if not len(rates):
        return None
    return float(rates.min() if extreme == "least" else rates.max())


def extreme_of(
    run: Observed,
    *,
    column: str,
    extreme: Literal["least", "most"],
    from_s: float = 0.0,
    to_s: float = math.inf,
) -> float | None:
    """The smallest or largest value of a column of `samples` between two times."""
    values = run.column(column, from_s, to_s)
    if not len(values):
        return None
    return float(values.min() if extreme == "least" else values.max())


def completion(run: Observed) -> float:
    """The time in which the flow completed; infinite if it did not."""
    time = run.flow["fct_s"]
    return math.inf if time is None else time
