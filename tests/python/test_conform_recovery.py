"""What criteria of QUIC's recovery measure, on windows that are made up."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from weir.conform.measures import recovery
from weir.conform.measures.observed import Observed


def windows(*values: float, in_flight: float = 0.0) -> Observed:
    """As many windows in equal parts of ten seconds, with this much always in flight."""
    held = [float(values[place * len(values) // 1000]) for place in range(1000)]
    samples = pl.DataFrame(
        {
            "flow": np.zeros(1000),
            "t_s": np.arange(1, 1001) / 100,
            "cwnd_bytes": held,
            "bytes_in_flight": [in_flight] * 1000,
        }
    )
    return Observed(0, 1, [{}], {}, samples, pl.DataFrame(), [])


def test_the_time_between_reductions() -> None:
    twice = windows(40e3, 20e3, 21e3, 22e3, 11e3)
    assert recovery.shortest_between_reductions(twice) == pytest.approx(6.0)
    assert recovery.shortest_between_reductions(twice, from_s=3) == math.inf
    assert recovery.shortest_between_reductions(windows(40e3, 20e3)) == math.inf
    thrice = windows(40e3, 20e3, 10e3, 9.7e3, 4e3)
    assert recovery.shortest_between_reductions(thrice) == pytest.approx(2.0)


def test_growth_counts_after_a_reduction_only() -> None:
    assert recovery.growth_after_reduction(windows(9e3, 40e3, 20e3, 21e3), rtt_s=0.04) == 1e3
    assert recovery.growth_after_reduction(windows(40e3, 20e3, 25e3, 12e3), rtt_s=0.04) == 5e3
    assert recovery.growth_after_reduction(windows(20e3, 25e3), rtt_s=0.04) is None


def test_what_is_in_flight_is_within_the_window_until_that_is_reduced() -> None:
    assert recovery.in_flight_above_window(windows(40e3, in_flight=39e3)) == -1e3
    assert recovery.in_flight_above_window(windows(40e3, in_flight=41e3)) == 1e3
    assert recovery.in_flight_above_window(windows(40e3, 20e3, in_flight=39e3)) == -1e3
