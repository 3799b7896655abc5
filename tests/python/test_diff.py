"""`weir diff`: what differs, what does not, and how often chance is taken for a difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import polars as pl
import pytest
from conftest import Invoke
from made import change, fail
from scipy.stats import binom

import weir
from weir import Results
from weir.comparison.difference import Diff
from weir.statistics.intervals import LEVEL, independent_difference

Made = Callable[..., Results]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A comparison with losses, whose options a test may change, in a folder of its own."""

    def make(*stacks: str, **options: object) -> Results:
        out = tmp_path_factory.mktemp("results")
        asked = {"duration": "4s", "loss": "0.1%", "rate": "20mbit", "repeat": 8, **options}
        return weir.compare(*(stacks or ("reno",)), out=out, show_progress=False, **asked)  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="module")
def baseline(made: Made) -> Results:
    return made()


def test_the_same_command_gives_the_same_bytes(
    invoke: Invoke, baseline: Results, made: Made
) -> None:
    again = made()
    result = invoke("diff", baseline.path, again.path)
    assert result.exit_code == 0, result.stderr
    assert "Byte-identical" in result.stdout
    document = json.loads(invoke("diff", baseline.path, again.path, "--json").stdout)
    assert (document["verdict"], document["rows"], document["tested"]) == ("byte-identical", [], 0)
    touched = change(again, "links", pl.col("link") + 1)
    assert "Byte-identical" not in invoke("diff", baseline.path, touched.path).stdout


def test_other_seeds_show_no_difference(invoke: Invoke, baseline: Results, made: Made) -> None:
    other = made(seed=1001)
    result = invoke("diff", baseline.path, other.path, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert (document["schema"], document["command"]) == (1, "diff")
    assert document["verdict"] == "not significant"
    assert document["changes"] == []
    assert document["tested"] > 20
    assert {row["paired"] for row in document["rows"]} == {False}
    text = invoke("diff", baseline.path, other.path)
    assert text.exit_code == 0
    assert "No significant difference" in text.stdout
    assert "Holm" in text.stdout


def test_another_queue_is_a_difference(invoke: Invoke, baseline: Results, made: Made) -> None:
    small = made(queue="0.1bdp", seed=1001)
    result = invoke("diff", baseline.path, small.path)
    assert result.exit_code == 1
    assert "Significant differences" in result.stdout
    assert "topology.queue is 1bdp in A, 0.1bdp in B" in result.stdout
    document = json.loads(invoke("diff", baseline.path, small.path, "--json").stdout)
    assert document["verdict"] == "significant"
    rows = {row["metric"]: row for row in document["rows"]}
    delay = rows["queue_delay_ms_p95"]
    assert delay["verdict"] == "significant"
    assert delay["difference"]["hi"] < 0 < delay["a"]["lo"]
    assert delay["difference"]["mean"] == pytest.approx(delay["b"]["mean"] - delay["a"]["mean"])
    assert delay["adjusted_p_value"] >= delay["p_value"]


def test_common_seeds_are_compared_pair_by_pair(baseline: Results, made: Made) -> None:
    overlapping = made(seed=5, sets={"topology.rtt": "41ms"})
    findings = Diff(baseline, overlapping).findings
    assert all(finding.is_paired for finding in findings)
    goodput = next(f for f in findings if f.metric.name == "goodput_mbps")
    assert (goodput.a.n, goodput.b.n, goodput.difference.estimate.n) == (8, 8, 4)
    one, other = (r.values("reno", "goodput_mbps") for r in (baseline, overlapping))
    pairs = [(other[seed] or 0) - (one[seed] or 0) for seed in (5, 6, 7, 8)]
    assert goodput.difference.estimate.mean == pytest.approx(sum(pairs) / 4)


@pytest.mark.slow
def test_alike_sets_differ_no_more_often_than_is_said(made: Made) -> None:
    """60 pairs of sets of 5 runs, all of other seeds: of those as many may differ as is said.

    At a rate of 5 % more than the quantile below would differ once in a thousand times. Without
    the correction there are more than 5 %, so that it has something to correct.
    """
    sets, runs = 120, 5
    everything = made("cubic", repeat=sets * runs, duration="1s", loss="1%")
    values = everything.per_run.sort("seed")
    parts = [_part(everything, values[n * runs : (n + 1) * runs]) for n in range(sets)]
    diffs = [Diff(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    assert all(diff.tested > 20 for diff in diffs)
    most = binom.ppf(0.999, len(diffs), 1 - LEVEL)
    assert sum(diff.differs for diff in diffs) <= most
    uncorrected = sum(any(f.difference.is_shown for f in diff.findings) for diff in diffs)
    assert uncorrected > len(diffs) * (1 - LEVEL)


def _part(results: Results, values: pl.DataFrame) -> Results:
    """Some runs as results of their own."""
    part = Results(results.path / f"part-{values['seed'][0]}", {**results.manifest, "tables": {}})
    part.__dict__["per_run"] = values
    part.__dict__["runs"] = results.runs.join(values.select("run"), on="run", how="semi")
    return part


def test_where_nothing_is_random_any_change_counts(made: Made) -> None:
    options = {"loss": "0%", "sets": {"flow.0.start_jitter": "0s"}, "repeat": 2}
    one, other = made(**options), made(**options, seed=7, rtt="41ms")
    assert one.runs["trace_hash"].n_unique() == 1
    assert Diff(one, other).differs


def test_counts_that_do_not_vary_are_not_taken_for_certain(baseline: Results) -> None:
    """Three in all runs here and four there: rare of eight runs a side, not so of two.

    Of the ways to exchange the sides this one and its opposite are as extreme.
    """
    for repeats, differs, ways in ((2, False, 6), (8, True, 12_870)):
        sides = []
        for timeouts in (3.0, 4.0):
            values = baseline.per_run.sort("seed").head(repeats)
            seeds = pl.col("seed") + int(timeouts) * 100
            side = _part(baseline, values.with_columns(seeds, timeouts=pl.lit(timeouts)))
            sides.append(side)
        findings = Diff(*sides).findings
        (finding,) = (f for f in findings if f.metric.name == "timeouts")
        assert finding.difference.estimate.mean == 1
        assert finding.difference.p_value == pytest.approx(2 / ways)
        assert (finding.verdict == "significant") is differs


def test_sets_that_do_not_match_name_what_is_missing(
    invoke: Invoke, baseline: Results, made: Made, tmp_path: Path
) -> None:
    other = made("reno", "cubic", repeat=2)
    result = invoke("diff", baseline.path, other.path)
    assert result.exit_code == 2
    assert result.stderr == "weir: the cases do not match: A lacks «cubic»\n"
    result = invoke("diff", other.path, made("bbr", repeat=2).path)
    assert "A lacks «bbr»; B lacks «reno», «cubic»" in result.stderr
    result = invoke("diff", baseline.path, tmp_path)
    assert (result.exit_code, "no results here" in result.stderr) == (2, True)
    broken = copytree(baseline.path, tmp_path / "broken")
    spoilt = fail(weir.load(broken), "reno", 3, "the disk is full")
    result = invoke("diff", baseline.path, spoilt.path)
    assert result.exit_code == 2
    assert "B lacks 1 of its 8 runs; reno, seed 3: the disk is full" in result.stderr


def test_single_runs_have_no_variance(invoke: Invoke, made: Made) -> None:
    result = invoke("diff", made(repeat=1).path, made(repeat=1, seed=2).path)
    assert result.exit_code == 2
    assert "too few repeats" in result.stderr


def test_a_metric_on_one_side_only_is_reported_but_not_judged(
    invoke: Invoke, baseline: Results, tmp_path: Path
) -> None:
    copied = weir.load(copytree(baseline.path, tmp_path / "copied"))
    other = change(copied, "flows", pl.lit(None, pl.Float64).alias("rtt_ms_p99"))
    result = invoke("diff", baseline.path, other.path, "--all")
    assert result.exit_code == 0, result.stdout
    assert "Values only in A: 1 metrics, not compared." in result.stdout


def test_welch_is_right_about_a_published_case() -> None:
    """`scipy.stats.ttest_ind(equal_var=False)` on unequal samples."""
    from scipy.stats import ttest_ind

    one, other = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9], [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8]
    expected = ttest_ind(one, other, equal_var=False)
    found = independent_difference(one, other)
    low, high = expected.confidence_interval()
    assert found.p_value == pytest.approx(expected.pvalue)
    assert (found.estimate.lo, found.estimate.hi) == pytest.approx((low, high))
    assert found.estimate.mean == pytest.approx(sum(one) / 6 - sum(other) / 7)
    assert independent_difference([1.0], other).p_value is None
    assert independent_difference([], other).estimate.n == 0
    assert independent_difference([1.0, 1.0], [1.0, 1.0]).p_value == 1.0
