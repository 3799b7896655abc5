"""Starts, steps and oscillations against worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_dynamics import curve

from weir.base.errors import InputError
from weir.dynamics.responses import delivered_area, ramp_up, step_response, variation
from weir.statistics.censoring import Wait


def test_ramp_up_is_the_first_sample_by_which_so_much_is_there() -> None:
    slow = curve([0.0, 0.012, 0.108, 0.5], start_s=2.5)  # 1500 bytes are 0.012 Mbit
    assert ramp_up(slow, range(4)) == {
        0: Wait(2.0),
        1: Wait(3.0),
        2: Wait(None, 4.0),
        3: Wait(None, 4.0),
    }


def test_the_faster_start_has_the_larger_area() -> None:
    assert delivered_area(curve([2, 4]), 2) == pytest.approx(1 + (2 + 6) / 2)
    assert delivered_area(curve([2, 4]), 1.5) == pytest.approx(1 + 0.5 * (2 + 4) / 2)
    assert delivered_area(curve([4, 2]), 2) > delivered_area(curve([2, 4]), 2)


def test_a_step_is_overshot_and_then_settles() -> None:
    up = curve([5, 5, 7, 12, 11, 10.5, 9.5, 10, 10])
    found = step_response(up, 2, 9, before_mbps=5, after_mbps=10, bin_s=1, hold_s=3)
    assert found.overshoot == pytest.approx(2 / 5)
    assert found.settling == Wait(2.0)
    down = curve([10, 10, 6, 3, 4.5, 5, 5])
    found = step_response(down, 2, 7, before_mbps=10, after_mbps=5, bin_s=1, hold_s=2)
    assert found.overshoot == pytest.approx(2 / 5)
    assert found.settling == Wait(2.0)
    never = step_response(curve([5] * 9), 2, 9, before_mbps=5, after_mbps=10, bin_s=1, hold_s=3)
    assert (never.overshoot, never.settling) == (0.0, Wait(None, 4.0))
    with pytest.raises(InputError, match="both 5: that is no step"):
        step_response(up, 2, 9, before_mbps=5, after_mbps=5)


def test_a_sawtooth_is_smooth_over_its_period() -> None:
    saw = curve([6.0, 8, 10] * 6)
    second, period = variation(saw, 0, 18, (1, 3, 30))
    assert (second.bins, period.bins) == (18, 6)
    assert second.cov == pytest.approx(np.std([6, 8, 10]) / 8)
    assert second.largest_drop == pytest.approx(0.4)
    assert period.cov == pytest.approx(0)
    assert variation(curve([0, 0]), 0, 2, (1,))[0].cov is None


@given(st.lists(st.integers(1, 50).map(float), min_size=4, max_size=40), st.integers(1, 3))
def test_variation_is_that_of_the_means_of_bins(per_second: list[float], width: int) -> None:
    found = variation(curve(per_second), 0, len(per_second), (width,))
    whole = len(per_second) // width
    if whole < 2:
        assert found == []
        return
    means = np.array(per_second[: whole * width]).reshape(whole, width).mean(axis=1)
    assert found[0].cov == pytest.approx(means.std() / means.mean())
    assert found[0].largest_drop == pytest.approx(max(0.0, *(1 - means[1:] / means[:-1])))
