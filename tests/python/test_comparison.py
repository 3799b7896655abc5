"""Verdicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import weir
from weir.base.errors import InputError
from weir.comparison.contrasts import Contrast, caution, contrasts, judged
from weir.comparison.verdicts import verdicts
from weir.report.summary import cautions
from weir.results.metrics import BY_NAME
from weir.results.unheard import unheard
from weir.statistics import intervals


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> weir.Results:
    out = tmp_path_factory.mktemp("results")
    return weir.compare(
        "reno",
        "stop-and-wait/none",
        loss="1%",
        duration="3s",
        repeat=5,
        out=out,
        show_progress=False,
    )


def test_an_obvious_difference_is_found(lossy: weir.Results) -> None:
    found = {contrast.metric.name: contrast for contrast in contrasts(lossy)}
    goodput = found["goodput_mbps"]
    assert (goodput.label, goodput.reference) == ("stop-and-wait/none", "reno")
    assert goodput.verdict == "significant"
    assert goodput.relative is not None
    assert goodput.relative < -0.5
    assert goodput.words.endswith("lower")
    assert "4 comparisons, Holm-corrected" in caution(list(found.values()))


def test_a_stack_does_not_differ_from_itself(tmp_path: Path) -> None:
    same = weir.compare(
        "reno", "rack/reno", duration="1s", repeat=3, out=tmp_path, show_progress=False
    )
    assert {contrast.verdict for contrast in contrasts(same)} == {"not significant"}


def test_where_nothing_arrives_nothing_is_compared(tmp_path: Path) -> None:
    silent = weir.compare(
        "reno", "cubic", rtt="10s", duration="3s", repeat=3, out=tmp_path, show_progress=False
    )
    goodput = next(one for one in contrasts(silent) if one.metric.name == "goodput_mbps")
    assert (goodput.words, goodput.is_relevant) == ("neither delivered anything", None)
    assert verdicts(contrasts(silent)) == ["cubic against reno: neither delivered anything."]
    assert silent.silence == "6 of 6 flows delivered no byte."


def test_one_repeat_proves_nothing(tmp_path: Path) -> None:
    single = weir.compare(
        "reno", "cubic", duration="1s", repeat=1, out=tmp_path, show_progress=False
    )
    assert {contrast.verdict for contrast in contrasts(single)} == {"too few repeats"}


def test_cases_are_compared_at_the_same_point_of_a_sweep(tmp_path: Path) -> None:
    swept = weir.compare(
        "reno",
        "cubic",
        duration="1s",
        repeat=2,
        sweep={"topology.queue": ["10p", "20p"]},
        out=tmp_path,
        show_progress=False,
    )
    found = contrasts(swept)
    assert {(c.series, c.reference) for c in found} == {("cubic", "reno")}
    assert {c.point["topology.queue"] for c in found} == {"10p", "20p"}


def test_results_show_themselves(lossy: weir.Results) -> None:
    html = lossy._repr_html_()
    assert "<table>" in html
    assert "stop-and-wait/none" in html
    assert "10 of 10 runs" in repr(lossy)
    summary = lossy.summary()
    assert set(summary["label"]) == {"reno", "stop-and-wait/none"}
    assert (summary["lo"] <= summary["mean"]).all()


def contrast(metric: str, differences: list[float], base: float, relevant: float) -> Contrast:
    """A stack against `reno`, whose mean is `base` and which it beats by `differences`."""
    seeds = range(len(differences))
    own = dict(zip(seeds, (base + d for d in differences), strict=True))
    difference = intervals.paired_difference(own, dict.fromkeys(seeds, base))
    mean = difference.estimate.mean
    assert mean is not None
    return Contrast(
        label="bbr",
        series="bbr",
        point={},
        reference="reno",
        metric=BY_NAME[metric],
        difference=difference,
        verdict=judged(difference, difference.p_value),
        relative=mean / base,
        base=base,
        relevant=relevant,
    )


def test_a_sure_difference_may_be_too_small_to_matter() -> None:
    tiny = [0.02, 0.021, 0.019, 0.02]
    found = contrast("goodput_mbps", tiny, 10.0, relevant=0.01)
    assert (found.verdict, found.is_relevant) == ("significant", False)
    assert found.words == "significant: 0.2% higher, not relevant"
    assert contrast("goodput_mbps", tiny, 10.0, relevant=0.001).words == "significant: 0.2% higher"


def test_alike_is_what_lies_within_the_relevant_difference() -> None:
    found = contrast("goodput_mbps", [0.01, -0.01, 0.005, -0.006], 10.0, relevant=0.01)
    assert (found.is_relevant, found.words) == (False, "no relevant difference")
    assert found.needed is None


def test_a_small_study_says_how_many_seeds_would_do() -> None:
    found = contrast("goodput_mbps", [1.0, -0.4, 0.6], 10.0, relevant=0.01)
    assert found.verdict == "not significant"
    assert found.is_relevant is None
    assert found.words == "inconclusive with 3 seeds (about 28 would do)"


def test_so_many_seeds_do() -> None:
    """By simulation: 8 of 10 studies of that size show the difference."""
    needed = intervals.pairs_needed(0.72, 0.4)
    assert needed == 28
    rng = np.random.default_rng(1)
    studies = rng.normal(0.4, 0.72, size=(4_000, needed))
    shown = [
        intervals.paired_difference(dict(enumerate(own)), dict.fromkeys(range(needed), 0.0))
        for own in studies
    ]
    power = sum(d.is_shown for d in shown) / len(shown)
    assert power == pytest.approx(0.8, abs=0.03)
    assert intervals.pairs_needed(1.0, 1e-9) is None
    more = intervals.pairs_needed(0.72, 0.4, tests=10)
    assert more is not None
    assert more > needed


def test_the_verdict_is_one_sentence() -> None:
    less = contrast("queue_delay_ms_mean", [-12.7, -12.8, -12.6], 20.9, relevant=0.01)
    some = contrast("goodput_mbps", [-0.18, -0.19, -0.18], 9.64, relevant=0.01)
    assert verdicts([less, some]) == ["bbr against reno: −61 % queue delay for −1.9 % goodput."]
    same = contrast("goodput_mbps", [-0.01, -0.02, -0.01], 9.64, relevant=0.01)
    assert verdicts([less, same]) == ["bbr against reno: −61 % queue delay at the same goodput."]
    much = contrast("goodput_mbps", [18.5, 18.6, 18.7], 10.0, relevant=0.01)
    assert verdicts([much]) == ["bbr against reno: 2.9 times the goodput."]
    double = contrast("goodput_mbps", [10.4, 10.5, 10.3], 10.0, relevant=0.01)
    assert verdicts([double]) == ["bbr against reno: 2 times the goodput."]
    assert double.words == "significant: 2.0 times as high"
    most = contrast("goodput_mbps", [9.6, 9.5, 9.4], 10.0, relevant=0.01)
    assert verdicts([most]) == ["bbr against reno: +95 % goodput."]
    unsure = contrast("goodput_mbps", [1.0, -0.4, 0.6], 10.0, relevant=0.01)
    (sentence,) = verdicts([less, unsure])
    assert sentence.startswith("bbr against reno: −61 % queue delay; goodput inconclusive with 3 ")


def test_differences_are_a_table(lossy: weir.Results) -> None:
    found = lossy.differences()
    goodput = found.row(by_predicate=pl.col("metric") == "goodput_mbps", named=True)
    assert (goodput["verdict"], goodput["relevant"], goodput["n"]) == ("significant", True, 5)
    assert goodput["lo"] < goodput["difference"] < goodput["hi"] < 0
    lenient = lossy.differences(relevant="100%").filter(pl.col("relative") < 0)
    assert not lenient["relevant"].any()
    with pytest.raises(InputError, match=r"relevant='a lot': .* percentage"):
        lossy.differences(relevant="a lot")


_DEAF = "hpcc goes by what routers tell, and none on the path does: set feedback"
_UNMARKED = "No packet was marked: what dctcp does with marks is not seen."


@pytest.mark.parametrize(
    ("stack", "sets", "said"),
    [
        ("hpcc", {}, _DEAF),
        ("hpcc", {"topology.feedback": '{ kind = "int" }'}, ""),
        ("dctcp", {}, _UNMARKED),
        ("dctcp", {"topology.queue": '{ kind = "ecn-step", threshold = "10p" }'}, ""),
    ],
)
def test_what_the_network_does_not_tell_a_controller_is_said(
    tmp_path: Path, stack: str, sets: dict[str, object], said: str
) -> None:
    found = weir.compare(
        stack, "reno", duration="2s", repeat=2, out=tmp_path, show_progress=False, sets=sets
    )
    texts = unheard(found)
    assert len(texts) == bool(said)
    assert all(text.startswith(said) and text in cautions(found) for text in texts)
