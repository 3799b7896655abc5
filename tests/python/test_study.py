"""The registry of studies and its verb, with a study that takes no time."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import Invoke

from weir import load
from weir.api import reports
from weir.cells.protocol import Cell, Settings, StudyResult
from weir.report import ReportSection
from weir.results.results import Results
from weir.running.execution import run_plan
from weir.scenario.plans import Comparison
from weir.studies import catalogue
from weir.studies import report as report_study


class Tiny:
    """Two cells without published values."""

    name = "tiny"
    description = "two cells"

    def run(self, settings: Settings) -> StudyResult:
        repeat = settings.repeat or {"small": 2, "full": 3}[settings.size]
        comparison = Comparison(
            stacks=("reno",), duration="1s", loss="1%", repeat=repeat, seed=settings.seed
        )
        results = run_plan(comparison.plan(), **settings.how)
        cell: Cell = {
            "table": "a",
            "row": "reno",
            "unit": "Mbit/s",
            "ours": results.estimate("reno", "goodput_mbps").as_json(),
            "note": "",
        }
        rows = [{**cell, "column": "1 s", "published": 9.5}, {**cell, "column": "2 s"}]
        return StudyResult(rows, ["It ran."], results)


class Drawn(Tiny):
    """The same with a report of its own and a table too wide for a terminal."""

    name = "drawn"

    def run(self, settings: Settings) -> StudyResult:
        result = super().run(settings)
        cell = {**result.rows[0], "table": "wide"}
        wide = [{**cell, "column": f"{second} s"} for second in range(60)]
        return StudyResult([*result.rows, *wide], result.findings, result.results)

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        text = f"{len(rows)} cells of {results.manifest['name']}"
        return [ReportSection("In its own words", paragraphs=[text])]


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "studies", lambda: {"tiny": Tiny(), "drawn": Drawn()})
    monkeypatch.setattr(report_study, "studies", catalogue.studies)


def test_json_has_the_cells(invoke: Invoke) -> None:
    result = invoke("study", "tiny", "--json", "--quiet", "--seed", 4)
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["command"] == "study"
    assert [row["column"] for row in document["rows"]] == ["1 s", "2 s"]
    assert document["rows"][0]["ours"]["n"] == 2
    assert result.stdout == invoke("study", "tiny", "--json", "--quiet", "--seed", 4).stdout


def test_a_machine_that_could_not_keep_up_is_reported_with_the_cells(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "health" not in json.loads(invoke("study", "tiny", "--json", "--quiet").stdout)
    monkeypatch.setattr(Results, "caution", "bad verdict: strained in 1 of 2 runs")
    printed = json.loads(invoke("study", "tiny", "--json", "--quiet").stdout)
    assert printed["health"] == "bad verdict: strained in 1 of 2 runs"


def test_the_cells_are_printed_and_kept(invoke: Invoke) -> None:
    result = invoke("study", "tiny", "--size", "full", "--quiet")
    assert result.exit_code == 0, result.stderr
    assert "9.5" in result.stdout
    assert "It ran." in result.stdout
    kept = json.loads(Path("results/compare/latest/study.json").read_text())
    assert (kept["study"], len(kept["rows"])) == ("tiny", 2)


def test_a_study_draws_its_own_report_and_draws_it_again_from_disk(invoke: Invoke) -> None:
    result = invoke("study", "drawn", "--quiet")
    assert result.exit_code == 0, result.stderr
    page = reports.write(load("results/compare/latest")).read_text(encoding="utf-8")
    assert "62 cells of compare" in page
    assert page.rindex("It ran.") < page.rindex("In its own words") < page.rindex("Provenance")
    assert "published and ours" not in page


def test_tables_too_wide_for_a_terminal_are_only_named(invoke: Invoke) -> None:
    printed = invoke("study", "drawn", "--quiet").stdout
    assert "In the report and in --json only" in printed
    assert "59 s" not in printed
    assert re.search(r"Wide +wide +60", printed), "title, name in --json, number of columns"


def test_a_size_must_exist(invoke: Invoke) -> None:
    result = invoke("study", "tiny", "--size", "huge")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "small and full" in result.stderr


def test_the_real_registry_holds_studies_by_their_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert all(name == study.name for name, study in catalogue.studies().items())
