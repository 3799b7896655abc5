"""Student's t distribution against SciPy's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri, stdtr, stdtrit

from weir.statistics import student

freedoms = st.one_of(st.integers(1, 200).map(float), st.floats(1, 100_000))
MOST_ERROR = 1e-9
"""Relative. JSON output carries six digits; with 100,000 degrees of freedom ten are right."""


@given(freedoms, st.floats(1e-3, 1e4))
def test_a_tail_is_scipy_s(freedom: float, t: float) -> None:
    expected = float(stdtr(freedom, -t))
    if expected > 1e-290:  # smaller ones lose digits in both
        assert student.upper_tail(t, freedom) == pytest.approx(expected, rel=MOST_ERROR)


@given(freedoms, st.floats(0.5, 1 - 1e-9))
def test_a_quantile_is_scipy_s(freedom: float, probability: float) -> None:
    expected = float(stdtrit(freedom, probability))
    found = student.quantile(freedom, probability)
    assert found == pytest.approx(expected, rel=MOST_ERROR, abs=MOST_ERROR)


def test_without_end_to_the_degrees_of_freedom_it_is_the_normal_distribution() -> None:
    assert student.quantile(math.inf, 0.975) == pytest.approx(float(ndtri(0.975)), rel=1e-12)
    assert student.upper_tail(1.96, math.inf) == pytest.approx(0.024997895148220435, rel=1e-12)


def test_the_ends_are_exact() -> None:
    assert student.upper_tail(0, 7) == 0.5
    assert student.upper_tail(math.inf, 7) == 0
    assert student.quantile(7, 0.5) == 0


@pytest.mark.parametrize("probability", [0.4999, 1, 2])
def test_a_quantile_is_of_the_upper_half(probability: float) -> None:
    with pytest.raises(ValueError, match="must be at least"):
        student.quantile(3, probability)
