"""The study `book`: it runs the chapter's tests, and its words follow its cells."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from made import assert_top_claims_fit
from prose import crowded, report_texts

from weir.cells import claims
from weir.cells.cells import Cells, digits
from weir.cells.protocol import Settings, StudyResult
from weir.studies.book import STUDY, joins, mix, rpc, series
from weir.studies.book.experiment import (
    AT_ROUTER,
    AT_SWITCH,
    BUFFERS,
    EXTENTS,
    RIVAL_BUFFERS,
    STREAMS,
    study_plan,
)
from weir.studies.catalogue import studies

pytestmark = pytest.mark.timeout(300)
"""The study runs in a fixture, whose time counts for the first test that asks for it."""

SMALL = EXTENTS["small"]
SCOPE = STUDY.scope(Settings())
SLICES = 60


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    out = tmp_path_factory.mktemp("book")
    return STUDY.run(Settings("small", None, 1, {"out": out, "show_progress": False}))


@pytest.fixture
def cells(result: StudyResult) -> Cells:
    return Cells(copy.deepcopy(list(result.rows)))


def set_mean(cells: Cells, table: str, row: str, column: str, mean: float) -> None:
    found = cells.table(table).at(row, column)
    assert found is not None
    found["ours"] = {"mean": mean, "lo": mean, "hi": mean, "n": 5}


def test_the_study_is_listed() -> None:
    assert studies()["book"] is STUDY


def test_the_full_size_has_the_chapters_times_and_networks() -> None:
    made = study_plan(EXTENTS["full"], "full", None, 1)
    by_label: dict[str, dict[str, Any]] = {case.label: case.scenario.fields for case in made.cases}
    for network in ("wan-10g", "wan-100m", "wan-10m"):
        two = by_label[f"2-flow, {network}, cubic"]
        assert two["measure"]["duration"] == "60s"
        assert [flow["start"] for flow in two["flow"]] == ["0s", "22s"]
        assert [flow["duration"] for flow in two["flow"]] == ["60s", "20s"]
        assert {flow["start_jitter"] for flow in two["flow"]} == {"100ms"}
        three = by_label[f"3-flow, {network}, cubic"]
        assert [flow["start"] for flow in three["flow"]] == ["0s", "12s", "26s"]
        assert [flow["duration"] for flow in three["flow"]] == ["60s", "40s", "20s"]
    forward, back = by_label["2-flow, wan-10g, cubic"]["topology"]["link"]
    assert (forward["rate"], forward["delay"], back["delay"]) == ("10gbit", "0s", "10ms")
    router, _ = by_label["2-flow, wan-10m, cubic"]["topology"]["link"]
    assert router["burst"] == "3kb"


def test_figure_14_has_both_of_its_delays() -> None:
    made = study_plan(EXTENTS["full"], "full", None, 1)
    by_label: dict[str, dict[str, Any]] = {case.label: case.scenario.fields for case in made.cases}
    for rate in (10, 100):
        for name, delay in ((f"wan-{rate}m", "40ms"), (f"wan-{rate}m-10ms", "10ms")):
            topology = by_label[f"3-flow, {name}, bbr"]["topology"]
            router, back = topology["link"]
            assert (router["rate"], back["delay"]) == (f"{rate}mbit", delay)
            assert (topology["rtt"], router["queue"]) == (delay, "1bdp")


def test_both_sizes_of_requests_run_at_once_beside_every_number_of_streams(
    cells: Cells, result: StudyResult
) -> None:
    for table in (*mix.GOODPUT.values(), *mix.P99.values(), mix.LOST):
        own = cells.table(table)
        assert own.rows() == list(AT_SWITCH), table
        assert own.columns() == [str(streams) for streams in STREAMS], table
        assert all(cell["ours"]["mean"] is not None or cell["note"] for cell in own.all), table
    small, large = (cells.table(mix.GOODPUT[name]) for name in ("10KB", "1MB"))
    assert all((small.mean(s, "1") or 0) < (large.mean(s, "1") or 0) for s in AT_SWITCH)
    assert "“10 KB beside 16”: " in " ".join(result.findings)


def test_nothing_failed(result: StudyResult) -> None:
    assert not result.results.failures
    assert result.results.manifest["complete"]


@pytest.mark.parametrize("network", series.DRAWN)
@pytest.mark.parametrize("figure", [series.GOODPUT, series.WINDOW])
def test_figures_over_time_are_complete(cells: Cells, figure: str, network: str) -> None:
    own = cells.table(f"{figure} {network}")
    stacks = AT_SWITCH if network == "wan-10g" else AT_ROUTER
    firsts = [row for row in own.rows() if "flow 1" in row]
    assert {row.partition(":")[0] for row in firsts} >= set(stacks)
    for row in own.rows():
        known = [c for c in own.columns() if own.mean(row, c) is not None]
        assert len(known) >= (SLICES if "flow 1" in row else SLICES // 3 - 1), row


def test_figures_of_requests_have_intervals_and_sample_counts(cells: Cells) -> None:
    repeats = SMALL.rpc[1]
    for figure in rpc.FIGURES.values():
        own = cells.table(figure)
        assert (own.rows(), own.columns()) == (list(AT_SWITCH), [str(n) for n in STREAMS])
        assert len(own.all) == len(AT_SWITCH) * len(STREAMS)
        for cell in own.all:
            assert cell["ours"]["n"] == repeats
            assert cell["ours"]["lo"] <= cell["ours"]["mean"] <= cell["ours"]["hi"]
            assert cell["samples"] >= 0
        assert sum(cell["samples"] for cell in own.all) > 100


def test_the_buffer_figure_has_a_percentile_or_a_reason_in_every_cell(cells: Cells) -> None:
    own = cells.table(rpc.BUFFER_FIGURE)
    assert own.rows() == list(AT_ROUTER)
    assert own.columns() == [f"{bdp:g} BDP" for bdp in BUFFERS]
    for cell in own.all:
        assert (cell["ours"]["mean"] is None) == ("needs" in cell["note"]), cell
    assert all(own.mean(row, "1 BDP") for row in own.rows())


def test_two_reno_flows_converge_and_say_when(cells: Cells, result: StudyResult) -> None:
    found = cells.table(joins.TWO).at("wan-10m, reno", joins.ADAPTS)
    assert found is not None
    assert found["ended"] == found["ours"]["n"] == SMALL.same["wan-10m"][1]
    assert 0 < found["ours"]["mean"] < 10
    finding = next(text for text in result.findings if text.startswith("When two Reno flows"))
    assert digits(found["ours"]["mean"]) in finding


def test_the_unfair_pair_is_the_most_uneven_of_all(cells: Cells) -> None:
    own = cells.table(joins.MIXED)
    table = next(c["table"] for c in cells.all if c["table"].startswith(series.UNFAIR))
    who = cells.table(table).rows()[0].partition(":")[0]
    settled = [row for row in own.rows() if SMALL.is_long_enough(row.partition(", ")[0])]
    shares = {row: own.mean(row, joins.SHARE) or 0.0 for row in settled}
    assert f"{table.partition(' ')[2]}, {who}" == max(shares, key=shares.__getitem__)


def test_bbr_and_cubic_change_places_with_the_buffer(cells: Cells) -> None:
    own = cells.table(rpc.RIVALRY)
    (row,) = own.rows()
    assert own.columns() == [f"{bdp:g} BDP" for bdp in RIVAL_BUFFERS]
    shallow = own.ours(row, "0.25 BDP")
    assert shallow.lo is not None
    assert shallow.lo > 0.5
    deep = own.mean(row, "16 BDP")
    assert deep is not None
    assert deep < 0.5


def test_every_claim_has_a_verdict(cells: Cells) -> None:
    own = cells.table(claims.TABLE)
    assert len(own.all) >= 10
    assert {claims.verdict_of(c) for c in own.all} <= {"agrees", "differs", "inconclusive"}


def test_the_claims_at_the_top_of_the_report_fit(cells: Cells) -> None:
    assert_top_claims_fit(STUDY, cells.all)


def test_verdicts_and_words_follow_the_numbers(cells: Cells) -> None:
    crossing = "two flows meet about ten seconds after the second starts (wan-10m)"
    for seconds, verdict in ((10.0, "agrees"), (1.0, "differs")):
        set_mean(cells, joins.TWO, "wan-10m, cubic", joins.CROSSES, seconds)
        found = {c["row"]: c for c in STUDY.claims(cells.all, SCOPE)}
        assert claims.verdict_of(found[crossing]) == verdict
    set_mean(cells, joins.TWO, "wan-10m, reno", joins.ADAPTS, 12.34)
    for bdp in RIVAL_BUFFERS:
        set_mean(cells, rpc.RIVALRY, "share of bbr", f"{bdp:g} BDP", 0.75)
    words = " ".join(STUDY.findings(cells.all, SCOPE))
    assert "to 12.3 s" in words
    assert "It stays above one half." in words


def test_the_report_has_every_figure_of_the_chapter(result: StudyResult) -> None:
    made = STUDY.sections(result.results, list(result.rows))
    figures = {figure.name: figure for section in made for figure in section.figures}
    assert not crowded([*result.findings, *report_texts(made, result.rows)])
    for number in (15, 16, 17, 18, 19, 20):
        assert any(name.startswith(f"fig-{number}") for name in figures), number
    assert all(figure.runs and figure.caption.endswith(".") for figure in figures.values())
    assert figures["fig-17"].svg().startswith("<svg")
    assert "flow 2 starts" in figures["fig-17"].svg()
