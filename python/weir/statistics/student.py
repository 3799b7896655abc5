"""Student's t distribution: its quantiles, and the probability of its tails.

A tail of t with n degrees of freedom is half the regularized incomplete beta function I_x(n/2, 1/2)
at x = n/(n + t²) (Abramowitz and Stegun 1964, 26.7.1).
"""

from __future__ import annotations

import math
from functools import lru_cache

from weir.statistics import beta

_PRECISION = 1e-14
_MOST_STEPS = 10_000


def upper_tail(t: float, freedom: float) -> float:
    """The probability of a value above `t`, which is not negative."""
    if math.isinf(freedom):
        return math.erfc(t / math.sqrt(2)) / 2
    whole = freedom + t * t
    if math.isinf(whole):
        return 0.0
    return beta.incomplete(freedom / 2, 0.5, freedom / whole, t * t / whole) / 2


@lru_cache(maxsize=1024)
def quantile(freedom: float, probability: float) -> float:
    """The value below which a share `probability` lies, of at least 0.5 and below 1."""
    if not 0.5 <= probability < 1:
        raise ValueError(f"probability must be at least 0.5 and below 1, not {probability}")
    tail, t = 1 - probability, 0.0
    # The tail is convex there, so Newton's method comes from below and never goes beyond.
    for _ in range(_MOST_STEPS):
        step = (upper_tail(t, freedom) - tail) / _density(t, freedom)
        t += step
        if step <= _PRECISION * t:
            break
    return t


def _density(t: float, freedom: float) -> float:
    if math.isinf(freedom):
        return math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    power = -(freedom + 1) / 2 * math.log1p(t * t / freedom)
    return math.exp(power - beta.log_beta(freedom / 2, 0.5)) / math.sqrt(freedom)
