"""`weir study NAME --stack STACK`: further stacks in studies that compare a list of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Invoke

from weir.cells.protocol import Settings
from weir.scenario.labels import checked
from weir.studies import catalogue
from weir.studies.described import DescribedStudy

OWN = """
import weir

class Mine(weir.CongestionControl):
    beta = 0.5

    def on_ack(self, cx, ack):
        if self.may_grow(cx, ack):
            self.cwnd += ack.acked if self.in_slow_start else cx.mss * ack.acked / self.cwnd

    def on_congestion(self, cx, event):
        if event.first_in_epoch:
            self.ssthresh = self.cwnd = max(self.beta * self.cwnd, 2 * cx.mss)
"""
COMPARING = ["coexist", "pantheon", "random-loss", "rtt-fairness", "steps"]


@pytest.fixture(autouse=True)
def _mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(OWN)


def described(name: str) -> DescribedStudy:
    found = catalogue.find(name)
    assert isinstance(found, DescribedStudy)
    return found


@pytest.mark.parametrize("name", COMPARING)
def test_an_added_stack_has_every_case_that_the_others_have(name: str) -> None:
    added = checked(["own=mine.py:Mine(beta=0.8)", "mine.py:Mine"], "sim")
    study = described(name)
    settings = Settings(repeat=1, stacks=added)
    cases = study.sources(settings)
    usual = study.sources(Settings(repeat=1))
    assert set(usual) < set(cases)
    assert sum("own" in label for label in cases) == sum("mine.py:Mine" in x for x in cases)
    stacks = {value for source in cases.values() for key, value in source.overrides}
    assert {"mine.py:Mine(beta=0.8)", "mine.py:Mine"} <= stacks
    assert "own" not in stacks


def test_an_own_controller_is_measured_in_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = described("random-loss")
    small = {"stacks": ["reno"], "seconds": 4, "repeat": 1, "percents": [1]}
    monkeypatch.setitem(study.data["sizes"], "small", small)
    monkeypatch.setattr(catalogue, "find", lambda _: study)
    added = tuple(checked(["mine.py:Mine"], "sim"))
    how = Settings(how={"out": tmp_path, "show_progress": False}, stacks=added)
    done = catalogue.run("random-loss", how)
    rows = [row for row in done.rows if row["table"] == "goodput"]
    assert [row["row"] for row in rows] == ["reno", "mine.py:Mine"]
    assert all(row["ours"]["mean"] > 0 for row in rows)
    assert done.findings[0] == "Added to the study: mine.py:Mine."
    assert "--stack mine.py:Mine" in done.results.manifest["command"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("lab-udp", "--stack", "bbr3"), f"others; studies that compare stacks: {COMPARING[0]}"),
        (("predict", "--stack", "bbr3"), "study predict repeats an experiment with the stacks of"),
        (("steps", "--stack", "cubic"), "--stack cubic: the study compares reno, cubic, bbr"),
        (("steps", "--stack", "a=cubic"), "--stack a=cubic: the study compares reno, cubic"),
        (("steps", "--stack", "bbr3,bbr3"), "--stack: bbr3 is given twice"),
        (("steps", "--stack", "bbr33"), "unknown controller 'bbr33'; did you mean bbr3?"),
        (("steps", "--stack", "none.py:Mine"), "none.py"),
        (("--published", "--stack", "bbr3"), "--stack bbr3: --published takes --size"),
    ],
)
def test_what_a_study_cannot_add_is_refused(
    invoke: Invoke, words: tuple[str, ...], message: str
) -> None:
    done = invoke("study", *words)
    assert done.exit_code == 2
    assert message in done.stderr


def test_the_studies_that_compare_stacks_are_known() -> None:
    found = [name for name, own in catalogue.studies().items() if getattr(own, "compares", False)]
    assert found == COMPARING
