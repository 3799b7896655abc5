"""Shares, harm and exponents against worked examples and theory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress, t
from test_dynamics import curve

from weir.dynamics.fairness import (
    harm,
    harm_interval,
    jain,
    max_min_ratio,
    rtt_exponent,
    share,
    size_fairness,
)
from weir.statistics.intervals import Estimate

amounts = st.lists(st.integers(0, 10_000).map(float), min_size=2, max_size=12)
positive = st.floats(0.1, 1000)


def test_jain_s_index_of_a_worked_example() -> None:
    assert jain([200, 160, 110, 95, 150]) == pytest.approx(715**2 / (5 * 109_225))
    assert jain([5, 0]) == 0.5
    assert jain([5]) is None
    assert jain([0, 0]) is None


@given(amounts, st.floats(0.5, 50))
def test_jain_s_index_is_bounded_and_has_no_scale(rates: list[float], scale: float) -> None:
    found = jain(rates)
    assert (found is None) == (max(rates) == 0)
    if found is not None:
        assert 1 / len(rates) - 1e-9 <= found <= 1 + 1e-9
        assert jain([rate * scale for rate in rates]) == pytest.approx(found)


@given(st.lists(positive, min_size=2, max_size=8))
def test_demands_that_are_met_alike_are_fair(demands: list[float]) -> None:
    assert jain([demand * 0.7 for demand in demands], demands) == pytest.approx(1)


def test_the_largest_over_the_smallest() -> None:
    assert max_min_ratio([2, 8, 4]) == 4
    assert max_min_ratio([8]) is None
    assert max_min_ratio([8, 0]) is None


def test_the_share_of_a_late_flow_over_its_life() -> None:
    first, late = curve([10, 10, 6, 7, 10]), curve([4, 3], start_s=2)
    assert share(late, [first, late], 2, 4) == pytest.approx(7 / 20)
    assert share(late, [first, late], 0, 5) == pytest.approx(7 / 50)
    assert share(late, [late], 0, 1) is None


def test_harm_as_ware_and_others_define_it() -> None:
    assert harm(10, 5, "more") == 0.5  # goodput halved
    assert harm(20, 80, "less") == 0.75  # delay fourfold
    assert harm(10, 12, "more") == pytest.approx(-0.2)
    assert harm(0, 5, "more") is None
    found = harm_interval({1: 10.0, 2: 8.0, 3: None}, {2: 6.0, 1: 5.0, 3: 1.0}, "more")
    assert (found.mean, found.n) == (0.375, 2)
    assert found.hi == 1.0  # two repeats say little, but harm cannot exceed 1


@given(positive, positive)
def test_harm_never_exceeds_one(solo: float, shared: float) -> None:
    for found in (harm(solo, shared, "more"), harm(solo, shared, "less")):
        assert found is not None
        assert found <= 1


def test_size_fairness_is_what_is_left_of_solo() -> None:
    found = size_fairness({1: 4.0, 2: 5.0}, {1: 2.0, 2: 2.5})
    assert found == Estimate(0.5, 0.5, 0.5, 2)
    assert size_fairness({1: 0.0, 2: 4.0}, {1: 2.0, 2: 2.0}).n == 1, "alone it got nothing"


@given(st.floats(-1, 3), st.lists(st.floats(1, 500), min_size=3, max_size=10, unique=True))
def test_an_exact_power_law_has_its_exponent(exponent: float, rtts: list[float]) -> None:
    if max(rtts) / min(rtts) < 1.01:
        return
    found = rtt_exponent(rtts, [7 * rtt**-exponent for rtt in rtts])
    assert found.mean == pytest.approx(exponent, abs=1e-6)
    assert found.lo == pytest.approx(exponent, abs=1e-3)


def test_the_exponent_s_interval_is_that_of_linear_regression() -> None:
    rng = np.random.Generator(np.random.PCG64(3))
    rtts = [10.0, 20, 40, 80, 160] * 3
    rates = [(100 / rtt) * math.exp(rng.normal(0, 0.2)) for rtt in rtts]
    fit = linregress(np.log(rtts), np.log(rates))
    half = t.ppf(0.975, len(rtts) - 2) * fit.stderr
    found = rtt_exponent(rtts, rates)
    assert (found.mean, found.lo, found.hi) == pytest.approx(
        (-fit.slope, -fit.slope - half, -fit.slope + half)
    )
    assert found.lo is not None
    assert found.hi is not None
    assert found.lo < 1 < found.hi


def test_no_exponent_without_two_rtts_or_with_a_starved_flow() -> None:
    two = rtt_exponent([10, 20], [8, 2])
    assert two.mean == pytest.approx(2)
    assert (two.lo, two.hi, two.n) == (None, None, 2)
    assert rtt_exponent([10, 10], [8, 2]).mean is None
    assert rtt_exponent([10, 20, 30], [8, 2, 0]).mean is None
    with pytest.raises(ValueError, match="3 RTTs and 2 rates"):
        rtt_exponent([10, 20, 30], [8, 2])
