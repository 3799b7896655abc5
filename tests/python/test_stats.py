"""Intervals and percentiles against scipy and numpy, on any sample."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from weir.statistics.bootstrap import bca_interval
from weir.statistics.intervals import (
    LEVEL,
    Estimate,
    holm,
    independent_ratio,
    jackknife,
    mean_interval,
    paired_difference,
    percentile,
    rounded,
)


@given(st.lists(st.integers(1, 1000).map(float), min_size=2, max_size=19))
def test_the_jackknife_of_a_mean_is_student_s_interval(sample: list[float]) -> None:
    """Pseudo-values of a mean are the sample itself."""
    ours = jackknife(sample, lambda some: math.fsum(some) / len(some))
    expected = mean_interval(sample)
    assert ours.n == expected.n
    for one, other in ((ours.mean, expected.mean), (ours.lo, expected.lo), (ours.hi, expected.hi)):
        assert one == pytest.approx(other, abs=1e-6)


numbers = st.integers(-1_000_000, 1_000_000).map(lambda n: n / 1000)
samples = st.lists(numbers, min_size=2, max_size=19)
spread = samples.filter(lambda sample: max(sample) - min(sample) > 1e-2)


@given(samples.filter(lambda sample: len(set(sample)) > 1))
def test_the_interval_of_a_small_sample_is_student_s(sample: list[float]) -> None:
    expected = scipy_stats.ttest_1samp(sample, 0).confidence_interval(0.95)
    found = mean_interval(sample)
    assert found.n == len(sample)
    assert found.mean == pytest.approx(np.mean(sample), abs=1e-9)
    assert (found.lo, found.hi) == pytest.approx((expected.low, expected.high), abs=1e-6)


@given(spread, spread)
def test_a_ratio_of_independent_means_has_welch_s_interval(
    own: list[float], other: list[float]
) -> None:
    reference = [2_000 + value for value in other]
    found = independent_ratio(own, reference)
    assert found.mean == pytest.approx(np.mean(own) / np.mean(reference))
    assert found.mean is not None
    assert found.lo is not None
    scaled = [found.mean * value for value in reference]
    expected = scipy_stats.ttest_ind(own, scaled, equal_var=False).confidence_interval(0.95)
    assert found.mean - found.lo == pytest.approx(expected.high / np.mean(reference), rel=1e-6)


def test_a_ratio_of_single_values_or_of_constants() -> None:
    assert independent_ratio([3.0], [2.0, None]) == Estimate(1.5, None, None, 1)
    assert independent_ratio([3.0, 3.0], [2.0, 2.0, 2.0]) == Estimate(1.5, 1.5, 1.5, 2)
    assert independent_ratio([3.0, 3.0], [0.0, 0.0]) == Estimate(None, None, None, 0)


@given(samples, st.integers(0, 5))
def test_missing_values_are_left_out_and_not_counted(sample: list[float], missing: int) -> None:
    assert mean_interval([*sample, *[None] * missing, math.nan]) == mean_interval(sample)


def test_one_value_has_no_interval_and_none_has_no_mean() -> None:
    assert mean_interval([3.0]).as_json() == {"mean": 3.0, "lo": None, "hi": None, "n": 1}
    assert mean_interval([]).as_json() == {"mean": None, "lo": None, "hi": None, "n": 0}


def test_an_interval_stops_at_the_bounds_of_its_quantity() -> None:
    found = mean_interval([0.9, 1.0, 1.0], bounds=(0.0, 1.0))
    assert found.hi == 1.0
    assert found.lo is not None
    assert found.lo < 0.9


def test_a_large_skewed_sample_is_bootstrapped() -> None:
    sample = [1.0] * 29 + [100.0]
    found = mean_interval(sample)
    assert (found.lo, found.hi) == bca_interval(sample, LEVEL) == bca_interval(sample, LEVEL)
    assert found.lo is not None
    assert found.lo >= 1.0  # Student's interval would reach below every single sample


@pytest.mark.parametrize(
    ("zeros", "ones", "skewness", "is_bootstrapped"),
    [(22, 3, 2.34, True), (21, 4, 1.85, False), (18, 2, 2.67, True), (17, 2, 2.57, False)],
)
def test_a_bootstrap_needs_a_skewness_above_2_and_20_values(
    zeros: int, ones: int, skewness: float, is_bootstrapped: bool
) -> None:
    sample = [0.0] * zeros + [1.0] * ones
    assert scipy_stats.skew(sample) == pytest.approx(skewness, abs=0.01)
    found = mean_interval(sample)
    student = scipy_stats.ttest_1samp(sample, 0).confidence_interval(0.95)
    expected = bca_interval(sample, LEVEL) if is_bootstrapped else (student.low, student.high)
    assert (found.lo, found.hi) == pytest.approx(expected)
    assert bca_interval(sample, LEVEL) != pytest.approx((student.low, student.high), rel=0.01)


@given(st.lists(st.tuples(numbers, numbers), min_size=2, max_size=30))
def test_a_paired_difference_is_the_paired_t_test(pairs: list[tuple[float, float]]) -> None:
    a, b = zip(*pairs, strict=True)
    found = paired_difference(dict(enumerate(a)), dict(enumerate(b)))
    differences = [x - y for x, y in pairs]
    if len({round(d, 9) for d in differences}) == 1:
        return
    expected = scipy_stats.ttest_rel(a, b)
    assert found.estimate.mean == pytest.approx(np.mean(differences), abs=1e-9)
    assert found.p_value == pytest.approx(expected.pvalue, abs=1e-6)


def test_pairs_are_matched_by_seed() -> None:
    found = paired_difference({1: 10.0, 2: 20.0, 3: None, 9: 1.0}, {2: 19.0, 1: 8.0, 3: 4.0})
    assert (found.estimate.mean, found.estimate.n) == (1.5, 2)


def test_a_constant_difference_is_certain_and_no_difference_is_not() -> None:
    assert paired_difference({1: 2.0, 2: 2.0}, {1: 1.0, 2: 1.0}).p_value == 0.0
    assert paired_difference({1: 2.0, 2: 2.0}, {1: 2.0, 2: 2.0}).p_value == 1.0
    assert paired_difference({1: 2.0}, {1: 1.0}).p_value is None


@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_lies_between_no_correction_and_bonferroni(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    for before, after in zip(p_values, adjusted, strict=True):
        assert before <= after <= min(1.0, before * len(p_values)) or after == max(adjusted)
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    assert [adjusted[i] for i in order] == sorted(adjusted)


def test_holm_of_a_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(numbers, min_size=1, max_size=400), st.sampled_from([50, 90, 95, 99]))
def test_a_percentile_is_the_nearest_rank_or_refused(sample: list[float], percent: int) -> None:
    found = percentile(sample, percent)
    if len(sample) * (100 - percent) < 500:
        assert found is None
    else:
        assert found == np.percentile(sample, percent, method="inverted_cdf")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_keeps_six_digits_and_is_stable(value: float) -> None:
    once = rounded(value)
    assert once is not None
    assert once == pytest.approx(value, rel=5e-6)
    assert rounded(once) == once
    assert repr(once) != "-0.0"
