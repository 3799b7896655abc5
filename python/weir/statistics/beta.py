"""The beta distribution: its cumulative function and its quantiles.

The cumulative function is the regularized incomplete beta function I_x(a, b), computed by its
continued fraction (DLMF 8.17.22), so that small tails keep their digits. SciPy has all of this, but
is ten times as large as Weir.
"""

from __future__ import annotations

import math

_PRECISION = 1e-14
_MOST_STEPS = 10_000
_TINY = 1e-300
"""In place of a zero denominator, by the modified method of Lentz."""


def quantile(probability: float, a: float, b: float) -> float:
    """The x with I_x(a, b) = `probability`, which is between 0 and 1."""
    low, high, x = 0.0, 1.0, a / (a + b)
    for _ in range(_MOST_STEPS):
        excess = incomplete(a, b, x, 1 - x) - probability
        low, high = (low, x) if excess > 0 else (x, high)
        # Newton's method, but never out of what is known to enclose the quantile.
        following = x - excess / _density(x, a, b)
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - x) <= _PRECISION * x:
            return following
        x = following
    return x


def _density(x: float, a: float, b: float) -> float:
    power = (a - 1) * math.log(x) + (b - 1) * math.log1p(-x) - log_beta(a, b)
    return math.exp(power) or _TINY


def log_beta(a: float, b: float) -> float:
    """The logarithm of the beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def incomplete(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b), where `rest` is 1 - x without its rounding."""
    if x == 0 or rest == 0:
        return float(rest == 0)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly
        return 1 - incomplete(b, a, rest, x)
    factor = math.exp(a * math.log(x) + b * math.log(rest) - log_beta(a, b)) / a
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
