"""Percentiles of request latencies, their intervals and their refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from weir.statistics.intervals import rank_interval
from weir.statistics.requests import Percentile, needed, percentiles


def test_percentiles_of_a_worked_example() -> None:
    found = percentiles([*range(1, 101), None], [50, 90, 95, 99])
    assert [p.value for p in found] == [50, 90, 95, None]
    assert [p.n for p in found] == [100] * 4
    assert (found[0].lo, found[0].hi) == (40, 61)  # the usual ranks for a median of 100
    assert found[3].refusal == "100 samples; P99 needs 500"
    assert found[3] == Percentile(99, None, None, None, 100, found[3].refusal)


@pytest.mark.parametrize(("percent", "least"), [(50, 10), (90, 50), (99, 500), (99.9, 5000)])
def test_a_percentile_needs_five_samples_beyond_it(percent: float, least: int) -> None:
    assert needed(percent) == least
    too_few, enough = (percentiles(range(n), [percent])[0] for n in (least - 1, least))
    assert too_few.value is None
    assert enough.value == least - 6
    assert not enough.refusal


@given(st.integers(1, 400), st.sampled_from([0.5, 0.9, 0.99]))
def test_the_interval_holds_the_quantile_with_95_percent(n: int, share: float) -> None:
    low, high = rank_interval(n, share)
    # The quantile is below the sample of rank k when fewer than k samples are below the quantile.
    if low is not None:
        assert binom.cdf(low - 1, n, share) <= 0.025 < binom.cdf(low, n, share) + 1e-12
    else:
        assert binom.cdf(0, n, share) > 0.025 - 1e-12
    if high is not None:
        assert binom.cdf(high - 1, n, share) >= 0.975 - 1e-12
        assert binom.cdf(high - 2, n, share) < 0.975 + 1e-12
    else:
        assert binom.cdf(n - 1, n, share) < 0.975 + 1e-12


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.Generator(np.random.PCG64(7))
    truth = np.log(10)  # the P90 of an exponential distribution
    found = [percentiles(rng.exponential(size=200), [90])[0] for _ in range(1000)]
    covered = sum(p.lo is not None and p.hi is not None and p.lo <= truth <= p.hi for p in found)
    assert 940 <= covered <= 990
