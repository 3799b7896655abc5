"""The bootstrap interval of a mean."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

RESAMPLES = 9_999

_AT_ONCE = 1 << 22
"""Values that are drawn before their means are taken: 64 MiB."""


def bca_interval(sample: Sequence[float], level: float) -> tuple[float, float]:
    """The interval of the mean, corrected for bias and acceleration (Efron 1987, BCa).

    The same sample always gives the same interval: the resamples come from a seed of their own.
    `sample` has at least two different values.
    """
    import numpy as np

    values = np.asarray(sample, dtype=float)
    mean, n = values.mean(), values.size
    rng = np.random.Generator(np.random.PCG64(0))
    batch = max(1, _AT_ONCE // n)
    parts = [min(batch, RESAMPLES - done) for done in range(0, RESAMPLES, batch)]
    means = np.concatenate([values[rng.integers(0, n, (rows, n))].mean(axis=-1) for rows in parts])
    below = (np.count_nonzero(means < mean) + np.count_nonzero(means <= mean)) / (2 * RESAMPLES)
    # A mean without one value differs from the mean by that value's difference, over n - 1.
    away = values - mean
    acceleration = (away**3).sum() / (6 * (away**2).sum() ** 1.5)
    normal = NormalDist()
    bias = normal.inv_cdf(below)

    def bound(probability: float) -> float:
        shifted = bias + normal.inv_cdf(probability)
        corrected = normal.cdf(bias + shifted / (1 - acceleration * shifted))
        return float(np.quantile(means, corrected))

    tail = (1 - level) / 2
    return bound(tail), bound(1 - tail)
