"""Coming and going against worked examples, and against the definitions written out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import CensoredData, ecdf

import weir
from weir.base.errors import InputError
from weir.dynamics.convergence import (
    Epoch,
    convergence,
    crossing,
    epochs,
    jain_over_time,
    jain_since,
    reclaim,
)
from weir.dynamics.curves import Curve, bins, curves
from weir.statistics.censoring import Wait, summarised

rates = st.lists(st.integers(0, 50).map(float), min_size=1, max_size=40)


def curve(
    per_second: list[float], start_s: float = 0.0, left_s: float | None = None, flow: int = 0
) -> Curve:
    """A flow that is sampled once a second and gets these rates, in Mbit/s."""
    times = start_s + np.arange(len(per_second) + 1, dtype=np.float64)
    delivered = np.concatenate([[0.0], np.cumsum(per_second)])
    return Curve(flow, f"flow-{flow}", times, delivered, left_s)


def test_a_curve_adds_up_what_the_samples_say() -> None:
    samples = pl.DataFrame(
        {"run": 0, "flow": 0, "t_s": [0.5, 1.0, 1.5], "goodput_mbps": [10.0, 2.0, 4.0]}
    )
    flows = pl.DataFrame(
        {"run": 0, "flow": [0, 1], "name": ["a", "b"], "start_s": [0.3, 9.0], "end_s": [2.0, None]}
    )
    (own,) = curves(samples, flows)[0]
    assert own.delivered_mbit.tolist() == pytest.approx([0, 2, 3, 5])  # the first sample is short
    assert (own.start_s, own.seen_s, own.left_s) == (0.3, 1.5, None)
    assert own.rate(0.4, 1.25) == pytest.approx((1 + 1 + 1) / 0.85)


@given(rates, st.floats(1.0, 7.0), st.floats(0, 3))
def test_bins_of_any_width_lose_nothing(per_second: list[float], bin_s: float, at: float) -> None:
    own = curve(per_second)
    edges = bins([own], bin_s, at, own.seen_s)
    assert len(edges) - 1 == max(0, int((own.seen_s - at) / bin_s + 1e-9))
    total = float(own.delivered(edges[-1]) - own.delivered(edges[0]))
    assert float(np.sum(own.rates(edges)) * bin_s) == pytest.approx(total)


def test_bins_narrower_than_the_samples_are_refused() -> None:
    with pytest.raises(InputError, match=r"bin_s=0.5.*1 s here"):
        convergence([curve([1, 1]), curve([1, 1])], 0, 2, bin_s=0.5)
    with pytest.raises(InputError, match="epsilon=1"):
        convergence([curve([1, 1]), curve([1, 1])], 0, 2, bin_s=1, epsilon=1)


def test_flows_converge_when_they_stay_fair_and_not_when_they_pass_by() -> None:
    first = curve([9, 6, 5.2, 9, 5.5, 5.4, 5.0, 5.2, 6])
    late = curve([1, 4, 4.8, 1, 4.5, 4.6, 5.0, 4.8, 4])
    assert convergence([first, late], 0, 9, bin_s=1, hold_s=3) == Wait(4.0)
    assert convergence([first, late], 0, 9, bin_s=1, hold_s=5) == Wait(None, 4.0)
    assert convergence([first, late], 0, 2, bin_s=1, hold_s=5) == Wait(None, 0.0)
    # 6 and 4 are within 20 % of 5 each, and 4/6 is less than 0.8.
    assert convergence([first, late], 0, 9, bin_s=1, hold_s=5, rule="share") == Wait(4.0)
    assert convergence([first, late], 0, 9, bin_s=1, hold_s=1, rule="share") == Wait(1.0)


def test_a_fair_share_may_be_given_and_nothing_is_not_fair() -> None:
    flows = [curve([2, 2, 5, 5]), curve([2, 2, 5, 5])]
    assert convergence(flows, 0, 4, bin_s=1, hold_s=2, rule="share") == Wait(0.0)
    found = convergence(flows, 0, 4, bin_s=1, hold_s=2, rule="share", fair_mbps=5)
    assert found == Wait(2.0)
    assert convergence([curve([0] * 3)] * 2, 0, 3, bin_s=1, hold_s=1) == Wait(None, 2.0)


@given(rates, rates, st.integers(1, 6), st.sampled_from([0.0, 0.2, 0.5]))
def test_convergence_is_what_its_definition_says(
    a: list[float], b: list[float], hold: int, epsilon: float
) -> None:
    n = min(len(a), len(b))
    fair = [min(x, y) >= (1 - epsilon) * max(x, y) > 0 for x, y in zip(a[:n], b[:n], strict=True)]
    held = [i for i in range(n - hold + 1) if all(fair[i : i + hold])]
    found = convergence([curve(a), curve(b)], 0, n, bin_s=1, hold_s=hold, epsilon=epsilon)
    assert found == (Wait(held[0]) if held else Wait(None, max(0, n - hold)))


def test_who_stays_takes_what_is_set_free() -> None:
    gone = curve([4.0] * 10, left_s=10.0, flow=1)
    stays = curve([6.0] * 10 + [7, 8, 9.5, 9.7, 5.0, 12, 10, 10, 10, 10], flow=0)
    # 6 + 0.9 × 4 is reached in the third second already, but only then held on average.
    assert reclaim([stays], [gone], 10, 20, bin_s=1, hold_s=3) == Wait(5.0)
    assert reclaim([stays], [gone], 10, 20, bin_s=1, hold_s=1) == Wait(3.0)
    assert reclaim([stays], [gone], 10, 20, bin_s=1, hold_s=3, share=0.5) == Wait(1.0)
    assert reclaim([stays], [gone], 10, 14, bin_s=1, hold_s=3) == Wait(None, 1.0)
    assert reclaim([], [gone], 10, 20, bin_s=1) is None
    assert reclaim([stays], [curve([0.0] * 10, left_s=10.0)], 10, 20, bin_s=1) is None


def test_what_is_set_free_is_measured_while_all_that_leave_are_seen() -> None:
    gone = [curve([4.0] * 10, left_s=10.0, flow=1), curve([2.0] * 8, left_s=10.0, flow=2)]
    stays = curve([6.0] * 10 + [11.0] * 5 + [12.0] * 5, flow=0)
    # 6 + 0.9 × (4 + 2) is 11.4; the second flow's last samples count for nothing.
    assert reclaim([stays], gone, 10, 20, bin_s=1, hold_s=3) == Wait(5.0)


def test_a_wait_that_is_not_over_is_as_long_as_was_watched() -> None:
    slow, fast = curve([1.0] * 10, flow=0), curve([9.0] * 10, flow=1)
    assert convergence([slow, fast], 0, 10, bin_s=2, hold_s=2) == Wait(None, 8.0)


def test_the_late_one_overtakes_or_does_not() -> None:
    first, late = curve([9, 9, 6, 4, 6]), curve([5, 6, 4], start_s=2)
    assert crossing(first, late, 5, bin_s=1) == Wait(1.0)
    assert crossing(first, late, 3, bin_s=1) == Wait(None, 0.0)


def test_epochs_are_between_coming_and_going() -> None:
    a, b = curve([1] * 10, flow=0), curve([1] * 4, start_s=3.5, left_s=7.8, flow=1)
    found = epochs([a, b])
    assert [(e.start_s, e.end_s) for e in found] == [(0, 3.5), (3.5, 7.5), (7.8, 10)]
    assert [e.seconds for e in found] == pytest.approx([3.5, 4.0, 2.2])
    assert Epoch(5.0, 4.0, (), (), ()).seconds == 0
    assert [[c.flow for c in e.active] for e in found] == [[0], [0, 1], [0]]
    assert [[c.flow for c in e.joined] for e in found] == [[0], [1], []]
    assert [[c.flow for c in e.left] for e in found] == [[], [], [1]]


def test_fairness_over_time_counts_only_who_is_there() -> None:
    a, b = curve([8, 6, 5, 5, 9], flow=0), curve([2, 5, 5], start_s=1, flow=1)
    found = jain_over_time([a, b], 1)
    assert found["t_s"].to_list() == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert found["flows"].to_list() == [1, 2, 2, 2, 1]
    assert found["jain_index"].to_list() == [None, pytest.approx(64 / 80), 1, 1, None]
    assert jain_over_time([], 1).is_empty()
    assert jain_since([a, b], 1, 4, bin_s=1) == pytest.approx((2.8 / 3, 0.8))
    assert jain_since([a], 0, 4, bin_s=1) is None


@given(st.lists(rates, min_size=2, max_size=5), st.floats(1.0, 4.0))
def test_fairness_lies_between_one_nth_and_one(many: list[list[float]], bin_s: float) -> None:
    found = jain_over_time([curve(own, flow=i) for i, own in enumerate(many)], bin_s)
    for flows, index in found.select("flows", "jain_index").drop_nulls().iter_rows():
        assert 1 / flows - 1e-9 <= index <= 1 + 1e-9


def test_censored_repeats_are_longer_than_what_was_watched() -> None:
    waits = [*map(Wait, (3.0, 4.0, 5.0, 6.0, 7.0, 8.0)), *[Wait(None, 10.0)] * 3, None]
    found = summarised(waits)
    assert (found.median_s, found.ended, found.n, found.watched_s) == (7.0, 6, 9, 10.0)
    assert (found.lo_s, found.hi_s) == (4.0, None)  # ranks 2 and 8 of 9, the 8th is censored
    expected = "6 of 9 converged within 10 s, median 7 s (4 s or more)"
    assert found.words("converged") == expected
    unsure = summarised([Wait(3.0), Wait(9.0), Wait(None, 2.0)])  # it may have been the shortest
    assert unsure.median_s is None
    assert unsure.words("converged") == "2 of 3 converged within 2 s"
    early = summarised([*map(Wait, (1.0, 2.0, 7.0)), Wait(None, 6.0), Wait(None, 10.0)])
    assert (early.median_s, early.watched_s) == (None, 6.0)  # the one of 6 s may end before 7 s
    assert early.short() == "> 6 s (3/5)"
    assert summarised([Wait(1_234.5)]).short() == "1234 s (1/1)"
    assert summarised([]).short() == "– (0/0)"
    assert summarised([]).words() == "not observed"


@given(st.lists(st.integers(0, 30).map(float), min_size=1, max_size=25), st.integers(0, 30))
def test_the_median_with_censoring_is_kaplan_and_meier_s(times: list[float], until: int) -> None:
    waits = [Wait(t) if t <= until else Wait(None, float(until)) for t in times]
    ended = [t for t in times if t <= until]
    found = summarised(waits)
    if not ended:
        assert found.median_s is None
        return
    remaining = ecdf(CensoredData(ended, right=[until] * (len(times) - len(ended)))).sf
    below = remaining.quantiles[remaining.probabilities <= 0.5 + 1e-9]
    assert found.median_s == (below[0] if len(below) else None)


def test_late_comer_shares_and_leaves(tmp_path: Path) -> None:
    results = weir.run(
        "late-comer",
        sweep={"flow.*.stack": ["reno"]},
        repeat=2,
        out=tmp_path,
        show_progress=False,
    )
    (label,) = (case["label"] for case in results.cases)
    assert results.bin_s(label) == pytest.approx(0.1)
    slow = results.convergence(label, bin_s=1.0)
    assert list(slow) == [1, 2]
    assert all(wait is not None and 1 <= (wait.time_s or 0) <= 10 for wait in slow.values())
    assert slow == results.convergence(label, "guest", bin_s=1.0)
    assert results.convergence(label, "resident", bin_s=1.0) == {1: None, 2: None}
    assert summarised(results.reclaim(label).values()).ended == 2
    over_time = results.jain_over_time(label, 1.0)
    both = over_time.filter(pl.col("flows") == 2)
    assert both["t_s"].min() == 21.5
    assert both["t_s"].max() == 39.5
    suggestion = r"there is no flow 'gest'; did you mean guest\? There are: resident, guest"
    with pytest.raises(InputError, match=suggestion):
        results.convergence(label, "gest")
    with pytest.raises(InputError, match="there is no case 'missing'"):
        results.jain_over_time("missing")
