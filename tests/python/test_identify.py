"""Study `identify`: its cells and its findings, on one path and with three controllers."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.cells.cells import Cells
from weir.cells.protocol import Settings
from weir.running.execution import RunOptions
from weir.studies import catalogue, identify
from weir.studies.identify.paths import PATHS


def test_the_study_names_what_it_captured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identify, "CONTROLS", ("reno", "bbr"))
    monkeypatch.setattr(identify, "OTHERS", ("copa",))
    monkeypatch.setattr(identify, "PATHS", {"small": {"DSL": PATHS["small"]["DSL"]}})
    how = RunOptions(out=tmp_path, show_progress=False)
    result = identify.STUDY.run(Settings(how=how))
    cells = Cells(result.rows)
    shares = cells.table(identify.SUMMARY)
    assert shares.mean("true one in the class", "all") == 100
    assert shares.mean("true one alone", "all") == 50, "reno has a class"
    assert shares.mean("no candidate, called unknown", "all") == 100
    confusion = cells.table(identify.CONFUSION)
    assert confusion.mean("bbr", "bbr") == 100
    assert confusion.mean("copa", identify.UNKNOWN) == 100
    assert "100.0 % of 2 captures" in result.findings[0]
    assert "(goal: 97 %, reached)" in result.findings[0]
    limited = cells.table(identify.LIMITED)
    assert limited.mean("wrong name", "all") == 0
    assert limited.mean("called unknown", "all") == 100
    assert "Of 8 flows that their application limits 0 have a wrong name" in result.findings[-1]


def test_a_wrong_name_is_counted_and_named() -> None:
    found = [
        identify.Found("p", "reno", ("reno", "lp"), 0.0),
        identify.Found("p", "bic", ("cubic",), 0.1),
        identify.Found("p", "copa", ("vegas",), None),
    ]
    rows = list(identify._summary(found))
    shares = Cells(rows)
    assert shares.mean("true one in the class", "p") == 50
    assert shares.mean("wrong name", "p") == 50
    assert shares.mean("no candidate, called unknown", "p") == 0
    findings = list(identify._findings(found, rows, Settings()))
    assert "not reached" in findings[0]
    assert "Not right: bic on p is called cubic." in findings
    assert "Not right: copa on p is called vegas." in findings


def test_a_wrong_name_of_a_flow_that_its_application_limits_is_named() -> None:
    right = identify.Found("p", "bic", (), 0.0)
    wrong = identify.Found("p", "bic", ("cubic",), 0.1)
    found = [("paced", right), ("paced", wrong), ("uploads", right)]
    limited = Cells(list(identify._limited(found))).table(identify.LIMITED)
    assert limited.mean("wrong name", "paced") == 50
    assert limited.mean("called unknown", "uploads") == 100
    first, second = identify._false_names(found)
    assert "1 have a wrong name (goal: below 0.5 %, not reached)" in first
    assert second == "Not right: bic on p, paced, is called cubic."


def test_every_control_runs_on_every_path() -> None:
    for size, paths in (("small", 2), ("full", 8)):
        plan = identify.STUDY.plan(Settings(size=size))
        assert len(plan.runs) == paths * (17 + 3 + 17 * 4)
    assert "identify" in catalogue.studies()
