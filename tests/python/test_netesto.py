"""The study `netesto`: the scripts' times, mixes and buffers; its words follow its cells."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from prose import crowded

from weir.cells import claims
from weir.cells.cells import Cells, digits
from weir.cells.protocol import Settings, StudyResult
from weir.studies.catalogue import studies
from weir.studies.netesto import STUDY, measures
from weir.studies.netesto.experiment import (
    CLIENTS,
    EXTENTS,
    INSTANCES,
    MIXES,
    RATE_STACKS,
    rate_label,
    stream_tests,
    study_plan,
)

pytestmark = pytest.mark.timeout(300)
"""The study runs in a fixture, whose time counts for the first test that asks for it."""

SMALL = EXTENTS["small"]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    out = tmp_path_factory.mktemp("netesto")
    return STUDY.run(Settings("small", None, 1, {"out": out, "show_progress": False}))


@pytest.fixture
def cells(result: StudyResult) -> Cells:
    return Cells(copy.deepcopy(list(result.rows)))


def test_the_study_is_listed() -> None:
    assert studies()["netesto"] is STUDY


def test_the_full_size_has_the_scripts_times_buffers_and_clients() -> None:
    made = study_plan(EXTENTS["full"], "full", None, 1)
    by_label: dict[str, dict[str, Any]] = {case.label: case.scenario.fields for case in made.cases}
    two = by_label["2-flow, wan-10m, cubic then bbr, 0.5 BDP"]
    assert [flow["start"] for flow in two["flow"]] == ["0s", "23s"]
    assert [flow["duration"] for flow in two["flow"]] == ["60s", "20s"]
    three = by_label["3-flow, wan-100m, cubic, 8 BDP"]
    assert [flow["start"] for flow in three["flow"]] == ["0s", "13s", "25s"]
    assert [flow["duration"] for flow in three["flow"]] == ["60s", "40s", "20s"]
    assert three["topology"]["link"][0]["queue"] == "8bdp"
    for instances in INSTANCES:
        pairs = by_label[rate_label("10K + 1M", instances, "cubic")]
        loads = [(flow["count"], flow["workload"]["request"]) for flow in pairs["flow"]]
        assert loads == [(CLIENTS * instances, "10kib"), (CLIENTS * instances, "1mib")]


def test_nothing_failed(result: StudyResult) -> None:
    assert not result.results.failures


def test_every_quantity_has_a_cell_per_test_and_buffer(cells: Cells) -> None:
    for quantity in measures.STREAM_QUANTITIES:
        own = cells.table(measures.stream_table(quantity, "wan-10m"))
        assert own.columns() == [f"{bdp:g} BDP" for bdp in SMALL.buffers]
        assert len(own.rows()) == 2 * (1 + len(SMALL.others)) + 2 * len(SMALL.others)
        assert len(own.all) == len(own.rows()) * len(own.columns())
        for cell in own.all:
            assert cell["ours"]["mean"] is not None or cell["note"], cell


def test_rate_tests_fill_the_link_and_count_their_requests(cells: Cells) -> None:
    for mix in MIXES:
        own = cells.table(f"{measures.GOODPUT}, {mix}")
        assert (own.rows(), own.columns()) == (list(RATE_STACKS), [str(n) for n in SMALL.instances])
        for cell in own.all:
            assert 5 < cell["ours"]["mean"] < 10.5, cell
    tails = [cell for cell in cells.all if str(cell["table"]).startswith(measures.TAIL)]
    assert tails
    for cell in tails:
        assert (cell["ours"]["mean"] is None) == (cell["samples"] < 500), cell


def test_deep_buffers_cost_time_and_the_words_follow(cells: Cells) -> None:
    table = measures.stream_table(measures.RTT, "wan-10m")
    said = "deep buffers cost round-trip time under loss-based control"
    found = {c["row"]: c for c in cells.table(claims.TABLE).all}
    assert claims.verdict_of(found[said]) == "agrees"
    flat = cells.table(table).at("2-flow, cubic", "8 BDP")
    assert flat is not None
    flat["ours"] = cells.table(table).at("2-flow, cubic", "0.5 BDP")["ours"]  # type: ignore[index]
    sensitivity = measures.Sensitivity(next(stream_tests(SMALL)), low=0.25, high=1.0, n=2)
    scope = {**STUDY.scope(Settings()), "sensitivity": sensitivity}
    again = {c["row"]: c for c in STUDY.claims(cells.all, scope)}
    assert claims.verdict_of(again[said]) == "differs"
    moved = next(c for c in again.values() if c["published"] == 20)
    assert (moved["ours"]["mean"], claims.verdict_of(moved)) == (4, "agrees")


def test_findings_quote_the_cells(cells: Cells, result: StudyResult) -> None:
    own = cells.table(measures.stream_table(measures.SHARE, "wan-10m"))
    mean = own.mean("2-flow, cubic then bbr", "0.5 BDP")
    assert mean is not None
    assert any(f"Bbr: {digits(mean)} and " in text for text in result.findings)
    assert not crowded(result.findings)


def test_the_report_draws_every_quantity(result: StudyResult) -> None:
    made = STUDY.sections(result.results, list(result.rows))
    figures = [figure for section in made for figure in section.figures]
    assert len({figure.name for figure in figures}) == len(figures) >= 7
    assert all(not figure.data.is_empty() for figure in figures)
    assert figures[0].svg().startswith("<svg")
