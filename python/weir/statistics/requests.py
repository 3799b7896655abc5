"""Percentiles of request latencies: of raw samples, pooled, and refused where too few.

A percentile of a percentile is not one: what belongs together is pooled, flows and repeats alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from weir._native import MIN_TAIL
from weir.statistics.intervals import nearest_rank, rank_interval

PERCENTS = (50.0, 90.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class Percentile:
    """One percentile of `n` pooled samples, or why there is none.

    The interval lies between two of the samples, by the binomial distribution of how many are below
    the percentile. It takes samples as independent; those of one flow are alike, and an interval
    over repeats (`stats.mean_interval`) is then wider and truer.
    """

    percent: float
    value: float | None
    lo: float | None
    hi: float | None
    n: int
    refusal: str = ""

    def __post_init__(self) -> None:
        if (self.value is None) != bool(self.refusal):
            raise ValueError("a percentile has a value or a reason why not")


def percentiles(
    samples: Iterable[float | None], percents: Sequence[float] = PERCENTS, *, missing: int = 0
) -> list[Percentile]:
    """The nearest-rank percentiles of raw pooled samples, where none is `missing`.

    A percentile needs five samples beyond it, as everywhere in Weir: P99.9 needs 5000.
    """
    ordered = sorted(float(v) for v in samples if v is not None and not math.isnan(v))
    if missing:
        refusal = f"{missing} of {len(ordered) + missing} samples were not kept"
        return [Percentile(p, None, None, None, len(ordered), refusal) for p in percents]
    return [_percentile(ordered, percent) for percent in percents]


def needed(percent: float) -> int:
    """The smallest number of samples that a percentile is given for."""
    return math.ceil(MIN_TAIL / (1 - Fraction(str(percent)) / 100))


def _percentile(ordered: Sequence[float], percent: float) -> Percentile:
    n = len(ordered)
    rank = nearest_rank(n, percent)
    if rank is None:
        refusal = f"{n} samples; P{percent:g} needs {needed(percent)}"
        return Percentile(percent, None, None, None, n, refusal)
    low, high = (
        None if end is None else ordered[end - 1] for end in rank_interval(n, percent / 100)
    )
    return Percentile(percent, ordered[rank - 1], low, high, n)
