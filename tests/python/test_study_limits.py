"""Study `limits`: its cells and its findings, on two scenarios in the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.cells.cells import Cells
from weir.cells.protocol import Settings
from weir.reading import LIMITS
from weir.running.execution import RunOptions
from weir.studies import catalogue, limits
from weir.studies.limits.cases import CASES


def test_the_study_finds_configured_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = {name: CASES["small"][name] for name in ("messages", "deep buffer")}
    monkeypatch.setattr(limits, "CASES", {"small": some})
    how = RunOptions(out=tmp_path, show_progress=False)
    result = limits.STUDY.run(Settings(how=how))
    cells = Cells(result.rows)
    summary = cells.table(limits.SUMMARY)
    for place in (limits.SENDER, limits.RECEIVER, limits.MIDDLE):
        assert summary.mean(limits.RIGHT_PLACE, place) == 100
        assert (summary.mean("messages", place) or 0.0) > 95
        matrix = cells.table(limits.confusion(place))
        assert matrix.mean("application", "application") == summary.mean("messages", place)
    assert len(result.findings) >= 3


def test_time_with_another_limit_is_not_right() -> None:
    shares = {"congestion": 0.7, "random-loss": 0.3}
    found = [
        limits.Found("a", place, "congestion", shares, (place,))
        for place in (limits.SENDER, limits.RECEIVER, limits.MIDDLE)
    ]
    summary = Cells(list(limits._summary(found)))
    assert summary.mean("all", limits.SENDER) == pytest.approx(70)
    findings = list(limits._findings(found))
    assert "70.0 % of the time has the configured limit (goal: 95 %, not reached)" in findings[0]
    assert findings[1].endswith("a (congestion) is congestion 70%, random-loss 30%.")


def test_every_limit_has_a_scenario() -> None:
    configured = {case.limit for case in CASES["full"].values()}
    # A peer that is gone is no setting of a path.
    assert configured == set(LIMITS) - {"unknown", "no-answer"}
    for size, number in (("small", 4), ("full", 12)):
        assert len(limits.STUDY.plan(Settings(size=size)).runs) == 2 * number
    assert "limits" in catalogue.studies()
