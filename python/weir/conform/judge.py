"""From the values of the runs to a verdict.

| join | passes if |
|---|---|
| `worst` | the value of every run is within the bounds |
| `median` | the median of the runs is |
| `average` | the mean of the runs is |
| `mean` | the whole 95 % interval of the mean is; inconclusive if only a part of it is |
| `not-outside` | a part of the 95 % interval of the mean is: "not worse" of paired differences |

Without bounds the median is reported. A value of None means that a run could not be measured: the
verdict is inconclusive. Infinity means
that an event did not happen within the run, which no upper bound allows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.conform.cases.bounds import FAIL, INCONCLUSIVE, PASS, REPORTED, Envelope
from weir.conform.cases.model import Join
from weir.statistics.intervals import Estimate, mean_interval


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with the value that decides, and its distance from the nearest bound."""

    verdict: str
    value: float | None
    margin: float | None
    """Positive inside of the bounds, in the unit of the value."""
    estimate: Estimate
    note: str = ""
    decisive: int = 0
    """The position of the run that decides: the worst one."""


def judged(values: Sequence[float | None], envelope: Envelope, join: Join) -> Judgement:
    """The verdict on one value per run."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    estimate = mean_interval(value for value in known if math.isfinite(value))
    if not known or len(known) < len(values):
        note = f"{len(known)} of {len(values)} runs have a value"
        return Judgement(INCONCLUSIVE, None, None, estimate, note)
    if envelope.is_open:
        return Judgement(REPORTED, float(np.median(known)), None, estimate)
    margins = [margin(value, envelope) for value in known]
    worst = min(range(len(known)), key=lambda index: margins[index])
    if join in ("worst", "median", "average"):
        value = {"worst": known[worst], "median": float(np.median(known))}.get(
            join, float(np.mean(known))
        )
        within = sum(own >= 0 for own in margins)
        own = margin(value, envelope)
        note = f"{within} of {len(known)} runs within" if own < 0 else ""
        return Judgement(PASS if own >= 0 else FAIL, value, own, estimate, note, worst)
    return _by_interval(estimate, envelope, join, worst)


def _by_interval(estimate: Estimate, envelope: Envelope, join: Join, worst: int) -> Judgement:
    mean, low, high = estimate.mean, estimate.lo, estimate.hi
    if mean is None or low is None or high is None:
        note = "an interval needs two runs or more"
        return Judgement(INCONCLUSIVE, mean, None, estimate, note, worst)
    if _is_outside(low, high, envelope):
        note = "the whole 95 % interval is outside"
        return Judgement(FAIL, mean, margin(mean, envelope), estimate, note, worst)
    is_inside = envelope.holds(low) and envelope.holds(high)
    verdict = PASS if is_inside or join == "not-outside" else INCONCLUSIVE
    note = "a bound is within the 95 % interval" if verdict == INCONCLUSIVE else ""
    return Judgement(verdict, mean, margin(mean, envelope), estimate, note, worst)


def _is_outside(low: float, high: float, envelope: Envelope) -> bool:
    """Whether no value of an interval is within the bounds."""
    is_below = envelope.low is not None and high < envelope.low
    is_above = envelope.high is not None and low > envelope.high
    return is_below or is_above


def margin(value: float, envelope: Envelope) -> float:
    """The distance to the nearest bound, negative outside; infinite without bounds."""
    low = math.inf if envelope.low is None else value - envelope.low
    high = math.inf if envelope.high is None else envelope.high - value
    return min(low, high)
