"""Verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

import weir
from weir.comparison import caution, contrasts


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
    assert goodput.verdict == "differs"
    assert goodput.relative is not None
    assert goodput.relative < -0.5
    assert goodput.words.endswith("lower")
    assert "comparisons were made" in caution(list(found.values()))


def test_a_stack_does_not_differ_from_itself(tmp_path: Path) -> None:
    same = weir.compare(
        "reno", "rack/reno", duration="1s", repeat=3, out=tmp_path, show_progress=False
    )
    assert {contrast.verdict for contrast in contrasts(same)} == {"no difference shown"}


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
