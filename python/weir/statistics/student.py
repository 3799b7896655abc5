"""Student's t distribution: its quantiles, and the probability of its tails.

SciPy has both, but its import takes longer than the statistics of a comparison. A tail of t with n
degrees of freedom is half the regularized incomplete beta function I_x(n/2, 1/2) at x = n/(n + t²)
(Abramowitz and Stegun 1964, 26.7.1). That function is computed by its continued fraction (DLMF
8.17.22), so that small tails keep their digits.
"""

from __future__ import annotations

import math
from functools import lru_cache

_PRECISION = 1e-14
_MOST_STEPS = 10_000
_TINY = 1e-300
"""In place of a zero denominator, by the modified method of Lentz."""


def upper_tail(t: float, freedom: float) -> float:
    """The probability of a value above `t`, which is not negative."""
    if math.isinf(freedom):
        return math.erfc(t / math.sqrt(2)) / 2
    whole = freedom + t * t
    if math.isinf(whole):
        return 0.0
    return _incomplete_beta(freedom / 2, 0.5, freedom / whole, t * t / whole) / 2


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
    return math.exp(power - _log_beta(freedom / 2, 0.5)) / math.sqrt(freedom)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b), where `rest` is 1 - x without its rounding."""
    if x == 0 or rest == 0:
        return float(rest == 0)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly
        return 1 - _incomplete_beta(b, a, rest, x)
    factor = math.exp(a * math.log(x) + b * math.log(rest) - _log_beta(a, b)) / a
    return factor / _fraction(a, b, x)


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction 1 + d₁/(1 + d₂/(1 + …)) of DLMF 8.17.22."""
    value, c, d = 1.0, 1.0, 0.0
    for n in range(1, _MOST_STEPS):
        m, is_odd = divmod(n, 2)
        if is_odd:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + term * d or _TINY)
        c = 1 + term / c or _TINY
        value *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return value
