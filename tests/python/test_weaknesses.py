"""The study that searches for each controller's worst networks."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.base.errors import InputError
from weir.cells.protocol import Settings, StudyResult
from weir.results.results import load
from weir.search import hunt
from weir.studies import catalogue, weaknesses
from weir.studies.report import compose_study

GOALS = ("unfair", "harm")


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """One controller, with a small part of the budget."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(weaknesses.STACKS, "small", ("cubic",))
        patch.setattr(weaknesses, "IN_TURN", GOALS)
        patch.setitem(weaknesses.BUDGETS, "small", 64)
        for name, few in (("_MOST_CHECKS", 4), ("_MORE_JUDGES", 6), ("_FRESH_SEEDS", 4)):
            patch.setattr(hunt, name, few)
        out = tmp_path_factory.mktemp("weaknesses")
        how = {"out": out, "show_progress": False}
        return catalogue.run("weaknesses", Settings(how=how))  # type: ignore[arg-type]


def test_each_controller_has_a_cell_for_each_goal(searched: StudyResult) -> None:
    worst = [row for row in searched.rows if row["table"] == weaknesses.WORST]
    places = [(row["row"], row["column"]) for row in worst]
    assert places == [("cubic", goal) for goal in GOALS]
    for row in worst:
        assert row["note"]
        if row["found"]:
            assert row["ours"]["mean"] is not None
            assert row["keys"]


def test_cubic_next_to_itself_does_no_harm_by_definition(searched: StudyResult) -> None:
    worst = [row for row in searched.rows if row["table"] == weaknesses.WORST]
    found = {(row["row"], row["column"]): row for row in worst}
    harm = found["cubic", "harm"]
    assert not harm["found"]
    assert harm["ours"]["mean"] == 1.0, "also where both get next to nothing"


def test_the_worst_networks_are_runs_that_show_it_again(searched: StudyResult) -> None:
    results = load(searched.results.path)
    labels = {f"{row['column']}, {row['row']}" for row in searched.rows}
    assert {case["label"] for case in results.cases} <= labels
    assert results.runs["status"].unique().to_list() == ["ok"]


def test_the_report_says_found_and_not_found(searched: StudyResult) -> None:
    report = compose_study(load(searched.results.path))
    texts = [cell.text for s in report.sections for t in s.tables for r in t.cells for cell in r]
    assert any(text.endswith(", found") for text in texts)
    assert any(text.endswith(", not found") for text in texts)
    assert all(point.endswith(".") for s in report.sections for point in s.points)


def test_it_is_not_resumed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--resume has no effect"):
        catalogue.run("weaknesses", Settings(how={"out": tmp_path, "resume": True}))
