"""Exact probabilities, beta quantiles and the bootstrap, next to SciPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import special
from scipy import stats as scipy_stats

from weir.statistics import beta
from weir.statistics.bootstrap import RESAMPLES, bca_interval
from weir.statistics.counts import (
    binomial_quantile,
    chi_square_tail,
    fisher_greater,
    two_samples,
)

close = pytest.approx


@given(st.floats(1e-6, 1 - 1e-6), st.integers(1, 1_000_000), st.integers(1, 1_000_000))
def test_a_quantile_of_the_beta_distribution(probability: float, a: int, b: int) -> None:
    expected = float(scipy_stats.beta.ppf(probability, a, b))
    assert beta.quantile(probability, a, b) == close(expected, rel=1e-9)


@given(st.floats(1e-6, 1 - 1e-6), st.integers(0, 100_000), st.floats(0, 1))
def test_a_quantile_of_the_binomial_distribution(probability: float, n: int, share: float) -> None:
    found = binomial_quantile(probability, n, share)
    # Sums that differ in the last digit may lie on both sides of the probability.
    assert special.bdtr(found, n, share) >= probability - 1e-9
    assert found == 0 or special.bdtr(found - 1, n, share) < probability + 1e-9


cell = st.integers(0, 2_000)


@given(cell, cell, cell, cell)
def test_fisher_s_exact_test(a: int, b: int, c: int, d: int) -> None:
    expected = scipy_stats.fisher_exact(np.array([[a, b], [c, d]]), alternative="greater").pvalue
    assert fisher_greater(a, b, c, d) == close(float(expected), rel=1e-9, abs=1e-300)


def test_fisher_s_exact_test_of_a_million_packets() -> None:
    table = (900, 9_100, 1_000, 989_000)
    expected = scipy_stats.fisher_exact(np.reshape(table, (2, 2)), alternative="greater").pvalue
    assert fisher_greater(*table) == close(float(expected), rel=1e-9, abs=1e-300)


@given(st.floats(1e-3, 500.0), st.integers(1, 60))
def test_the_tail_of_chi_square(statistic: float, freedom: int) -> None:
    expected = float(scipy_stats.chi2.sf(statistic, freedom))
    assert chi_square_tail(statistic, freedom) == close(expected, rel=1e-9, abs=1e-300)


values = st.lists(st.integers(0, 30), min_size=1, max_size=25)


@given(values, values)
def test_two_samples_of_one_distribution(a: list[int], b: list[int]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expected = float(scipy_stats.ks_2samp(a, b, method="exact").pvalue)
    assume(not caught)  # SciPy's own exact method gave up
    assert two_samples(a, b) == close(expected, rel=1e-9)


@pytest.mark.parametrize("n", [5, 40, 700])
def test_the_bootstrap_draws_as_scipy_does(n: int) -> None:
    sample = np.random.default_rng(n).lognormal(size=n)
    expected = scipy_stats.bootstrap(
        (sample,), np.mean, n_resamples=RESAMPLES, rng=np.random.Generator(np.random.PCG64(0))
    ).confidence_interval
    assert bca_interval(list(sample), 0.95) == close((expected.low, expected.high), rel=1e-9)
