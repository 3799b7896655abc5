"""Exact probabilities of counts, and the test of two samples that counts their orders.

Probabilities are ratios of sums of weights, each got from its neighbour: no factorial overflows,
and none loses digits.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence


def binomial_quantile(probability: float, n: int, share: float) -> int:
    """The smallest k with P(Binomial(n, share) ≤ k) ≥ `probability`."""
    if n == 0 or share <= 0:
        return 0
    if share >= 1:
        return n
    odds = share / (1 - share)
    first, weights = _weights(0, n, int((n + 1) * share), lambda k: (n - k) * odds / (k + 1))
    least, below = probability * math.fsum(weights), 0.0
    for k, weight in enumerate(weights, first):
        below += weight
        if below >= least:
            return k
    return first + len(weights) - 1


def fisher_greater(a: int, b: int, c: int, d: int) -> float:
    """The one-sided p-value of Fisher's exact test of the table ((a, b), (c, d)).

    It is the probability of a count of at least `a` there, given the sums of rows and columns.
    """
    row, column, whole = a + b, a + c, a + b + c + d
    least, most = max(0, row + column - whole), min(row, column)

    def ratio(k: int) -> float:
        return (row - k) * (column - k) / ((k + 1) * (whole - row - column + k + 1))

    mode = min(max((row + 1) * (column + 1) // (whole + 2), least), most)
    first, weights = _weights(least, most, mode, ratio)
    if a >= first + len(weights):
        return 0.0
    return min(1.0, math.fsum(weights[max(0, a - first) :]) / math.fsum(weights))


def two_samples(a: Sequence[float], b: Sequence[float]) -> float:
    """The p-value of the exact two-sample Kolmogorov-Smirnov test (Hodges 1958).

    Of all orders that the values of both could stand in, it is the share in which the two
    cumulative distributions lie as far apart somewhere as those of `a` and `b` do.
    """
    m, n = len(a), len(b)
    distance = _distance(sorted(a), sorted(b))
    # Orders so far that stay closer, after some values of the first sample and `j` of the second.
    inside = [0] * (n + 1)
    for i in range(m + 1):
        for j in range(n + 1):
            if abs(i * n - j * m) >= distance:
                inside[j] = 0
            elif i == j == 0:
                inside[j] = 1
            else:
                inside[j] += inside[j - 1] if j else 0
    orders = math.comb(m + n, n)
    return (orders - inside[n]) / orders


def chi_square_tail(statistic: float, freedom: int) -> float:
    """The probability of a chi-square of at least this (Abramowitz and Stegun, 26.4.4 f.).

    With no degree of freedom there is nothing that could differ: 1.
    """
    if freedom <= 0 or statistic <= 0:
        return 1.0
    half, odd = statistic / 2, freedom % 2
    term = math.exp(-half) * (math.sqrt(half) / math.gamma(1.5) if odd else 1.0)
    tail = [math.erfc(math.sqrt(half))] if odd else []
    for k in range(freedom // 2):
        tail.append(term)
        term *= half / (k + (1.5 if odd else 1.0))
    return math.fsum(tail)


def _distance(a: Sequence[float], b: Sequence[float]) -> int:
    """The largest distance of two cumulative distributions, in units of 1 / (len(a) len(b))."""
    m, n = len(a), len(b)
    return max(abs(bisect_right(a, x) * n - bisect_right(b, x) * m) for x in (*a, *b))


def _weights(
    least: int, most: int, mode: int, ratio: Callable[[int], float]
) -> tuple[int, list[float]]:
    """The weights of the counts `least` to `most`, where that of `mode` is 1, and the first count.

    `ratio(k)` is the weight of k + 1 over that of k. Weights that are zero in floating point are
    left out.
    """
    below, above = [], [1.0]
    weight = 1.0
    for k in range(mode - 1, least - 1, -1):
        weight /= ratio(k)
        if weight == 0:
            break
        below.append(weight)
    for k in range(mode, most):
        weight = above[-1] * ratio(k)
        if weight == 0:
            break
        above.append(weight)
    return mode - len(below), below[::-1] + above


__all__ = ["binomial_quantile", "fisher_greater", "two_samples"]
