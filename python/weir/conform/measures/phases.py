"""Phases of a controller: their order, lengths and what holds at their ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import polars as pl

from weir.conform.measures.observed import Observed, is_phase

__all__ = [
    "estimate_as_phase_ends",
    "first_followed_by",
    "first_phase",
    "followed_by",
    "longest_phase",
    "longest_without",
    "never_left",
    "phases_begun",
    "rounds_in_phase",
    "shortest_phase",
    "since_newest_minimum",
]


def followed_by(run: Observed, *, phase: str, following: str | Sequence[str]) -> float | None:
    """Whether `following` comes after every `phase`, and some `phase` ends.

    A `phase` that PROBE_RTT interrupts has not ended.
    """
    if not run.spans(phase):
        return None
    found = [b[0] for a, b in pairwise(run.phases) if is_phase(a[0], phase)]
    wanted = (following,) if isinstance(following, str) else following
    interrupting = () if "probe_rtt" in wanted else ("probe_rtt",)
    found = [name for name in found if not is_phase(name, phase) and name not in interrupting]
    return float(bool(found) and all(any(is_phase(n, w) for w in wanted) for n in found))


def first_followed_by(run: Observed, *, phase: str, following: str) -> float | None:
    """Whether `following` comes after the first `phase`."""
    names = [name for name, _, _ in run.phases]
    if phase not in names:
        return None
    after = names[names.index(phase) + 1 :]
    return float(bool(after) and is_phase(after[0], following))


def first_phase(run: Observed, *, phase: str) -> float | None:
    """The length of the first `phase`; infinite if it does not end within the run."""
    spans = run.spans(phase)
    if not spans:
        return None
    begin, end = spans[0]
    return end - begin if end < run.curve.seen_s else math.inf


def never_left(run: Observed, *, phase: str) -> float:
    """Whether `phase` comes first and last, and only PROBE_RTT interrupts it."""
    names = [name for name, _, _ in run.phases]
    return float(names[:1] == names[-1:] == [phase] and set(names) <= {phase, "probe_rtt"})


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


def rounds_in_phase(
    run: Observed, *, phase: str, extreme: Literal["least", "most"]
) -> float | None:
    """The round trips in the shortest or longest `phase` that ends within the run.

    A round trip lasts as long as the newest RTT sample says: the sum of times over samples.
    """
    rows = run.samples.select("t_s", "rtt_ms").drop_nulls()
    times, rtts = rows["t_s"].to_numpy(), rows["rtt_ms"].to_numpy() / 1e3
    if len(times) < 2:
        return None
    rounds = np.concatenate([[0.0], np.cumsum(np.diff(times) / rtts[1:])])
    spans = [span for span in run.spans(phase) if span[1] < run.curve.seen_s]
    found = [float(np.diff(np.interp(span, times, rounds))[0]) for span in spans]
    if not found:
        return math.inf if run.spans(phase) else None
    return min(found) if extreme == "least" else max(found)


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
