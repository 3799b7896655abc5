"""How sure we are: intervals over repeats, paired differences and honest percentiles.

The functions take plain numbers, ignore missing ones and always say how many were left. They are
about repeats only; what happens inside one run is measured in Rust.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TypeVar

from weir._native import MIN_TAIL
from weir.statistics import student
from weir.statistics.bootstrap import bca_interval
from weir.statistics.counts import binomial_quantile

LEVEL = 0.95
"""The confidence level of every interval."""

SIGNIFICANT_DIGITS = 6
"""Significant digits of floats in JSON: more than any interval here supports."""

_POWER = 0.8
_MOST_PAIRS = 100_000
_SKEWED = 2.0
_ENOUGH_FOR_BOOTSTRAP = 20

Bounds = tuple[float | None, float | None]
_Run = TypeVar("_Run")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over `n` repeats with its 95 % interval, which needs at least two."""

    mean: float | None
    lo: float | None
    hi: float | None
    n: int

    def as_json(self) -> dict[str, float | int | None]:
        """The form that every `--json` output uses for a measured value."""
        return {
            "mean": rounded(self.mean),
            "lo": rounded(self.lo),
            "hi": rounded(self.hi),
            "n": self.n,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of pairwise differences, with its interval and two-sided t-test."""

    estimate: Estimate
    p_value: float | None
    deviation: float | None = None
    """The standard deviation of the pairwise differences."""

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes zero."""
        low, high = self.estimate.lo, self.estimate.hi
        return low is not None and high is not None and (low > 0 or high < 0)


def mean_interval(values: Iterable[float | None], bounds: Bounds = (None, None)) -> Estimate:
    """The mean with a 95 % interval, cut off at `bounds` where the quantity has any.

    It is Student's t interval, except for strongly skewed samples (|skewness| above 2) of 20 and
    more, whose interval comes from a bias-corrected bootstrap with a fixed seed: below that size
    the bootstrap is the worse of the two.

    >>> goodput = mean_interval([9.5, 9.7, 9.6, None])
    >>> (goodput.n, round(goodput.mean, 2), round(goodput.hi - goodput.mean, 2))
    (3, 9.6, 0.25)
    """
    sample = _present(values)
    n = len(sample)
    if n == 0:
        return Estimate(None, None, None, 0)
    mean = math.fsum(sample) / n
    if n == 1:
        return Estimate(mean, None, None, 1)
    if n >= _ENOUGH_FOR_BOOTSTRAP and abs(_skewness(sample)) > _SKEWED:
        low, high = bca_interval(sample, LEVEL)
    else:
        half = t_quantile(n - 1) * _standard_error(sample)
        low, high = mean - half, mean + half
    return Estimate(mean, *_within(low, high, bounds), n)


def jackknife(
    runs: Sequence[_Run],
    statistic: Callable[[Sequence[_Run]], float | None],
    bounds: Bounds = (None, None),
) -> Estimate:
    """A statistic of all runs together, with the interval that leaving out one run at a time gives.

    Tukey's pseudo-values under Student's t (Efron and Tibshirani 1993, §11).
    """
    whole, n = statistic(runs) if runs else None, len(runs)
    parts = [statistic([*runs[:i], *runs[i + 1 :]]) for i in range(n)] if n > 1 else []
    known = _present(parts)
    if whole is None or len(known) < n or n < 2:
        return Estimate(whole, None, None, n)
    error = math.sqrt((n - 1) / n * math.fsum((p - math.fsum(known) / n) ** 2 for p in known))
    half = t_quantile(n - 1) * error
    return Estimate(whole, *_within(whole - half, whole + half, bounds), n)


def paired_difference(
    values: Mapping[int, float | None], reference: Mapping[int, float | None]
) -> Difference:
    """`values - reference` over the repeats that both have, matched by their seed.

    Pairing takes out what the shared seed explains (start times, the fate of the n-th packet), so
    it sees smaller differences than two separate intervals would.
    """
    differences = []
    for seed in sorted(values.keys() & reference.keys()):
        value, other = values[seed], reference[seed]
        if value is not None and other is not None:
            differences.append(value - other)
    estimate = mean_interval(differences)
    n = len(differences)
    deviation = _standard_error(differences) * math.sqrt(n) if n > 1 else None
    return Difference(estimate, _p_value(differences), deviation)


def independent_difference(
    values: Iterable[float | None], reference: Iterable[float | None]
) -> Difference:
    """The mean of `values` less that of `reference`, whose repeats have nothing in common.

    Interval and test are Welch's, for unequal variances (Welch 1947), which take two values a side.
    """
    own, other = _present(values), _present(reference)
    n = min(len(own), len(other))
    if n == 0:
        return Difference(Estimate(None, None, None, 0), None)
    mean = math.fsum(own) / len(own) - math.fsum(other) / len(other)
    if n == 1:
        return Difference(Estimate(mean, None, None, 1), None)
    error, freedom = _welch(own, other)
    if error == 0:
        return Difference(Estimate(mean, mean, mean, n), 1.0 if mean == 0 else 0.0)
    half = t_quantile(freedom) * error
    p_value = _two_sided(mean / error, freedom)
    return Difference(Estimate(mean, mean - half, mean + half, n), p_value)


def mean_ratio(values: Sequence[float | None], reference: Sequence[float | None]) -> Estimate:
    """The mean of `values` over that of `reference`, whose repeats are matched by their order.

    A single value stands for every repeat. The interval is that of a ratio of means over pairs, by
    how far they lie off the common ratio (Cochran 1977, §2.11); there is none where the repeats of
    one side cannot be matched with those of the other.
    """
    own = [*values] * len(reference) if len(values) == 1 else [*values]
    if len(own) != len(reference):
        return _quotient(_present(own), _present(reference))
    matched = zip(own, reference, strict=True)
    pairs = [(one, other) for one, other in matched if one is not None and other is not None]
    ratio = _quotient([one for one, _ in pairs], [other for _, other in pairs])
    if ratio.mean is None or ratio.n < 2:
        return ratio
    middle = math.fsum(other for _, other in pairs) / ratio.n
    error = _standard_error([one - ratio.mean * other for one, other in pairs]) / abs(middle)
    half = t_quantile(ratio.n - 1) * error
    return Estimate(ratio.mean, ratio.mean - half, ratio.mean + half, ratio.n)


def independent_ratio(
    values: Iterable[float | None], reference: Iterable[float | None]
) -> Estimate:
    """The mean of `values` over that of `reference`, whose repeats have nothing in common.

    The interval is that of `values - ratio * reference`, to which the error of a ratio of means is
    close (Cochran 1977, §2.11), with Welch's degrees of freedom. It takes two values a side.
    """
    own, other = _present(values), _present(reference)
    ratio = _quotient(own, other)
    if ratio.mean is None or ratio.n < 2:
        return ratio
    error, freedom = _welch(own, [ratio.mean * value for value in other])
    middle = abs(math.fsum(other) / len(other))
    half = t_quantile(freedom) * error / middle if error else 0.0
    return Estimate(ratio.mean, ratio.mean - half, ratio.mean + half, ratio.n)


def pairs_needed(deviation: float, size: float, tests: int = 1) -> int | None:
    """How many pairs show a mean difference of `size` in 8 of 10 experiments.

    By the t-test at the 5 % level, divided among `tests` (Bonferroni, which Holm's correction never
    exceeds): the smallest n with n ≥ ((t₁ + t₂) deviation / size)², where t₁ and t₂ are Student's
    quantiles of level and power with n - 1 degrees of freedom (Chow, Shao and Wang 2008, §3.2.1).
    None if it is more than 100,000.
    """
    if deviation == 0:
        return 2
    low, high = 1, 2
    while not _suffices(high, deviation / size, tests):
        low, high = high, 2 * high
        if low >= _MOST_PAIRS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if _suffices(middle, deviation / size, tests):
            high = middle
        else:
            low = middle
    return high


def _suffices(n: int, spread: float, tests: int) -> bool:
    level = student.quantile(n - 1, 1 - (1 - LEVEL) / 2 / tests)
    return n >= ((level + student.quantile(n - 1, _POWER)) * spread) ** 2


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values adjusted for their number (Holm 1979), in the order given.

    >>> holm([0.04, 0.01])
    [0.04, 0.02]
    """
    ranked = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(ranked):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def percentile(samples: Iterable[float | None], percent: float) -> float | None:
    """The nearest-rank percentile of pooled samples; None when fewer than 5 lie beyond it."""
    ordered = sorted(_present(samples))
    rank = nearest_rank(len(ordered), percent)
    return None if rank is None else ordered[rank - 1]


def nearest_rank(n: int, percent: float) -> int | None:
    """The rank ⌈p n⌉ of a percentile among `n` samples; None when fewer than 5 lie beyond it."""
    if not 0 < percent < 100:
        raise ValueError(f"percent must lie between 0 and 100, not {percent}")
    share = Fraction(str(percent)) / 100  # 99.9 as written: 5000 samples have five beyond it
    return None if n * (1 - share) < MIN_TAIL else math.ceil(n * share)


def rank_interval(n: int, share: float) -> tuple[int | None, int | None]:
    """The ranks between which the quantile of `share` lies with 95 %, whatever the distribution.

    Of `n` independent samples Binomial(n, share) many lie below it. None at an end where there are
    too few samples to exclude 2.5 %.
    """
    tail = (1 - LEVEL) / 2
    low, high = binomial_quantile(tail, n, share), binomial_quantile(1 - tail, n, share) + 1
    return low or None, high if high <= n else None


def share_interval(successes: int, n: int) -> Estimate:
    """The share of successes among `n` independent tries, with Wilson's score interval (1927).

    >>> share = share_interval(8, 20)
    >>> (share.mean, round(share.lo, 3), round(share.hi, 3))
    (0.4, 0.219, 0.613)
    """
    if n == 0:
        return Estimate(None, None, None, 0)
    mean, z = successes / n, NormalDist().inv_cdf(0.5 + LEVEL / 2)
    middle = (mean + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n))
    # At the ends the bound is the share itself, but for rounding.
    return Estimate(mean, min(max(0.0, middle - half), mean), max(min(1.0, middle + half), mean), n)


def percent_interval(successes: int, n: int) -> Estimate:
    """The same in percent."""
    share = share_interval(successes, n)
    low, mean, high = (None if v is None else 100 * v for v in (share.lo, share.mean, share.hi))
    return Estimate(mean, low, high, n)


def t_quantile(freedom: float) -> float:
    """How many standard errors the interval reaches to either side, by Student's t."""
    return student.quantile(freedom, 0.5 + LEVEL / 2)


def rounded(value: float | None) -> float | None:
    """`value` at the number of significant digits that JSON output carries."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}") + 0.0  # adding 0.0 turns -0.0 into 0.0


def _quotient(one: Sequence[float], other: Sequence[float]) -> Estimate:
    """The ratio of two means."""
    if not one or math.fsum(other) == 0:
        return Estimate(None, None, None, 0)
    mean = math.fsum(one) / len(one) / (math.fsum(other) / len(other))
    return Estimate(mean, None, None, min(len(one), len(other)))


def _within(low: float, high: float, bounds: Bounds) -> tuple[float, float]:
    """An interval, cut off at `bounds`."""
    floor, ceiling = bounds
    return (
        low if floor is None else max(low, floor),
        high if ceiling is None else min(high, ceiling),
    )


def _present(values: Iterable[float | None]) -> list[float]:
    return [float(v) for v in values if v is not None and not math.isnan(v)]


def _standard_error(sample: Sequence[float]) -> float:
    n = len(sample)
    mean = math.fsum(sample) / n
    return math.sqrt(math.fsum((v - mean) ** 2 for v in sample) / (n - 1) / n)


def _welch(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """The standard error of a difference of two means, and its degrees of freedom."""
    errors = [_standard_error(sample) ** 2 for sample in (one, other)]
    error = math.sqrt(math.fsum(errors))
    if error == 0:
        return 0.0, math.inf
    shares = [(e / error**2) ** 2 / (len(x) - 1) for e, x in zip(errors, (one, other), strict=True)]
    return error, 1 / math.fsum(shares)


def _two_sided(t: float, freedom: float) -> float:
    """The probability of a Student's t that is at least as far from zero."""
    return 2 * student.upper_tail(abs(t), freedom)


def _skewness(sample: Sequence[float]) -> float:
    n = len(sample)
    mean = math.fsum(sample) / n
    second = math.fsum((v - mean) ** 2 for v in sample) / n
    if second == 0:
        return 0.0
    return math.fsum((v - mean) ** 3 for v in sample) / n / (second * math.sqrt(second))


def _p_value(differences: Sequence[float]) -> float | None:
    n = len(differences)
    if n < 2:
        return None
    mean, error = math.fsum(differences) / n, _standard_error(differences)
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return _two_sided(mean / error, n - 1)
