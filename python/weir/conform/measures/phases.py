"""Phases of a controller: their order, lengths and what holds at their ends."""

from __future__ import annotations

import math
from itertools import pairwise

import polars as pl

from weir.conform.observed import Observed, is_phase

__all__ = [
    "estimate_as_phase_ends",
    "followed_by",
    "longest_phase",
    "longest_without",
    "never_left",
    "phases_begun",
    "shortest_phase",
    "since_newest_minimum",
]


def followed_by(run: Observed, *, phase: str, following: str) -> float | None:
    """Whether `following` comes after every `phase`, and some `phase` ends."""
    if not run.spans(phase):
        return None
    found = [b[0] for a, b in pairwise(run.phases) if is_phase(a[0], phase)]
    found = [name for name in found if not is_phase(name, phase)]
    return float(bool(found) and all(is_phase(name, following) for name in found))


def never_left(run: Observed, *, phase: str) -> float:
    """Whether the controller is in `phase` from the first sample to the last."""
    return float([name for name, _, _ in run.phases] == [phase])


def phases_begun(
    run: Observed, *, phase: str, from_s: float = 0.0, to_s: float = math.inf
) -> float:
    """The number of times that `phase` begins between two times."""
    return float(sum(from_s <= begin <= to_s for begin, _ in run.spans(phase)))


def longest_without(run: Observed, *, phase: str) -> float:
    """The longest time from the end of a `phase` to the next; infinite without two."""
    gaps = [later[0] - one[1] for one, later in pairwise(run.spans(phase))]
    return max(gaps, default=math.inf)


def shortest_phase(run: Observed, *, phase: str, unit_s: float = 1.0) -> float | None:
    """The length of the shortest `phase` that ends within the run."""
    return min(_lengths(run, phase), default=math.inf) / unit_s if run.spans(phase) else None


def longest_phase(run: Observed, *, phase: str, unit_s: float = 1.0) -> float | None:
    """The length of the longest `phase` that ends within the run."""
    return max(_lengths(run, phase), default=math.inf) / unit_s if run.spans(phase) else None


def estimate_as_phase_ends(run: Observed, *, phase: str, mbps: float) -> float | None:
    """The newest delivery rate as the first `phase` ends, over the payload rate of a link."""
    spans = run.spans(phase)
    if not spans:
        return None
    rates = run.column("delivery_mbps", 0.0, spans[0][1])
    return float(rates[-1]) / (mbps * run.payload) if len(rates) else None


def since_newest_minimum(run: Observed, *, phase: str, from_s: float) -> float:
    """The longest time without a smaller RTT and without `phase`, from `from_s` on.

    A filter of the smallest RTT is renewed by a strictly smaller sample and by the end of `phase`.
    The time to the end of the run counts, so that a controller without `phase` fails.
    """
    least, renewed, longest, before = math.inf, 0.0, 0.0, ""
    columns = run.samples.select("t_s", "rtt_ms", pl.col("phase").cast(pl.String))
    for time_s, rtt_ms, name in columns.drop_nulls().iter_rows():
        if is_phase(name, phase) and not is_phase(before, phase):
            longest = max(longest, time_s - renewed) if time_s >= from_s else longest
            least = rtt_ms
        if is_phase(before, phase) and not is_phase(name, phase):
            renewed = time_s
        if rtt_ms < least:
            least = rtt_ms
            renewed = time_s
        before = name
    return longest if is_phase(before, phase) else max(longest, run.curve.seen_s - renewed)


def _lengths(run: Observed, phase: str) -> list[float]:
    """The lengths of the phases that end within the run."""
    return [end - begin for begin, end in run.spans(phase) if end < run.curve.seen_s]
