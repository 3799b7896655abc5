"""`weir conform`: suites are valid, criteria are applied as stated, and failures are reported."""

from __future__ import annotations

import json
import math
import shlex
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, get_args
from xml.etree import ElementTree as Xml

import numpy as np
import polars as pl
import pytest
import requires
import yaml  # type: ignore[import-untyped]
from conftest import Invoke
from test_schemas import check as fits_schema
from typer.testing import Result

from weir import _native, load
from weir.api.reports import write
from weir.base.errors import InputError
from weir.conform import baseline, judge, measures, outcome, words
from weir.conform.cases import scripts, stacks, suites
from weir.conform.cases.bounds import FAIL, INCONCLUSIVE, NOT_APPLICABLE, PASS, REPORTED, Envelope
from weir.conform.cases.model import Join, Suite
from weir.conform.cases.plans import Request, planned
from weir.conform.judge import judged
from weir.conform.junit import junit
from weir.conform.measures import needs
from weir.conform.measures.dctcp import alpha
from weir.conform.measures.observed import MSS, Observed
from weir.conform.measures.phases import followed_by, never_left, since_newest_minimum
from weir.dynamics.curves import Curve
from weir.results.results import Results
from weir.running.execution import run_plan

BROKEN = Path(__file__).with_name("fixed_window.py")

TINY = """
name = "tiny"
title = "Two criteria"
source = "RFC 0000"
stacks = ["reno"]
seeds = 2
[scenarios]
one = '''
[topology]
rate = "10mbit"
rtt = "20ms"
queue = "2bdp"
[[flow]]
stack = "reno"
[measure]
duration = "3s"
sample_interval = "20ms"
'''
[[case]]
id = "T1"
title = "Loss and use"
procedure = "One bulk flow, 3 s."
scenario = "one"
[[case.check]]
name = "loss"
measure = "value_of"
with = { column = "loss_ratio" }
high = 0.1
unit = "share"
ours = true
[[case.check]]
name = "goodput"
measure = "goodput_share"
with = { mbps = 10 }
low = 2
known = { reno = "no link carries twice its rate" }
[[case]]
id = "T2"
title = "For CUBIC"
procedure = "One bulk flow, 3 s."
scenario = "one"
controllers = ["cubic"]
[[case.check]]
name = "loss"
measure = "value_of"
with = { column = "loss_ratio" }
high = 1
"""
"""A suite whose runs take no time."""


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Makes the small suite the only one."""
    return _only(monkeypatch, TINY)


def _only(monkeypatch: pytest.MonkeyPatch, text: str) -> Suite:
    suite = suites.parsed(text)
    monkeypatch.setattr("weir.conform.cases.suites.suites", lambda: {suite.name: suite})
    return suite


def rows_of(result: Result) -> list[outcome.Row]:
    document = json.loads(result.stdout)
    fits_schema("conform", document)
    rows: list[outcome.Row] = document["rows"]
    assert rows
    return rows


def _xml(file: str) -> Xml.Element:
    return _parsed(Path(file).read_text(encoding="utf-8"))


def _parsed(text: str) -> Xml.Element:
    return Xml.fromstring(text)  # noqa: S314 -- our own document


@pytest.mark.parametrize(
    ("values", "join", "verdict"),
    [
        ([1.0, 2.0], "worst", PASS),
        ([1.0, 2.1], "worst", FAIL),
        ([1.0, 1.0, 2.1], "median", PASS),
        ([1.0, 2.1, 2.1], "median", FAIL),
        ([1.0, None], "worst", INCONCLUSIVE),
        ([], "worst", INCONCLUSIVE),
        ([1.0, math.inf], "worst", FAIL),
        ([1.0, 1.1, 0.9], "mean", PASS),
        ([2.9, 3.0, 3.1], "mean", FAIL),
        ([1.5, 2.0, 2.4], "average", PASS),
        ([1.9, 2.0, 2.2], "average", FAIL),
        ([1.5, 2.0, 2.4], "mean", INCONCLUSIVE),
        ([1.5, 2.0, 2.4], "not-outside", PASS),
        ([2.9, 3.0, 3.1], "not-outside", FAIL),
        ([1.0], "mean", INCONCLUSIVE),
    ],
)
def test_a_join_decides_as_stated(values: list[float | None], join: Join, verdict: str) -> None:
    assert judged(values, Envelope(None, 2.0), join).verdict == verdict


def test_the_schema_has_every_join() -> None:
    text = (files("weir.results") / "schemas" / "conform.json").read_text(encoding="utf-8")
    assert f'"join": {{"enum": {json.dumps(get_args(Join))}}}' in text


def test_a_value_without_bounds_is_reported() -> None:
    found = judged([1.0, 2.0, 4.0], Envelope(), "worst")
    assert (found.verdict, found.value, found.margin) == (REPORTED, 2.0, None)


def test_bounds_are_said_with_all_digits() -> None:
    assert [Envelope(*ends).text for ends in ((48, 49), (None, 3.4127), (0.9,), ())] == [
        "48 to 49",
        "at most 3.4127",
        "at least 0.9",
        "none",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.13e-6, "2.1e-06 share"),
        (-4e-5, "-4.0e-05 share"),
        (0.0, "0 share"),
        (0.0213, "0.0213 share"),
    ],
)
def test_a_tiny_value_keeps_its_sign(value: float, text: str) -> None:
    row: Any = {"value": value, "criterion": "at most 0 share", "unit": "share"}
    assert words.value_text(row, "value") == text


def test_the_workflow_runs_what_exists(invoke: Invoke) -> None:
    file = Path(__file__).parents[2] / "docs/ci/weir-conform.yml"
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    (command,) = (
        step["run"]
        for step in workflow["jobs"]["conform"]["steps"]
        if step.get("run", "").startswith("weir ")
    )
    values = {**workflow["env"], "CONTROLLER": f"{BROKEN}:FixedWindow"}
    filled = Template(command).substitute(values)
    result = invoke(*shlex.split(filled)[1:], "--dry-run", "--json")
    assert result.exit_code == 0, result.output
    stacks_run = {row["stack"] for row in json.loads(result.stdout)["rows"]}
    assert f"rack/{values['CONTROLLER']}" in stacks_run


def test_former_studies_are_named(invoke: Invoke) -> None:
    for name, suite in (("ccwg", "bbr"), ("transperf", "transperf")):
        result = invoke("study", name)
        assert result.exit_code == 2
        assert f"study {name} is now `weir conform {suite}" in result.output


def test_alpha_decays_by_a_sixteenth_per_round_trip_and_comes_to_the_marked_share() -> None:
    times, values = alpha(_marked(0.0))
    rounds = np.round((times - times[0]) / 0.01)
    assert values == pytest.approx((15 / 16) ** rounds)
    for share in (0.1, 0.5, 1.0):
        _, values = alpha(_marked(share))
        assert float(values[-300:].mean()) == pytest.approx(share, abs=0.02), "10 packets a round"


def _marked(share: float) -> Observed:
    """Ten seconds at 10 ms and a segment per millisecond, this share of them marked."""
    times = np.arange(1, 1001) / 100
    samples = pl.DataFrame({"flow": np.zeros(1000), "t_s": times, "srtt_ms": np.full(1000, 10.0)})
    queues = pl.DataFrame({"t_s": times, "marks": np.floor(times * 1000 * share)})
    curve = Curve(0, "flow", np.array([0.0, 10.0]), np.array([0.0, 1e4 * MSS * 8e-6]))
    return Observed(0, 1, [{}], {}, samples, queues, [curve])


def test_the_margin_is_that_of_the_worst_run() -> None:
    found = judged([0.99, 0.97, 1.0], Envelope(0.98, 1.02), "worst")
    assert (found.value, found.decisive) == (0.97, 1)
    assert found.margin == pytest.approx(-0.01)
    assert found.note == "2 of 3 runs within"
    assert judge.margin(1.0, Envelope(0.98, 1.03)) == pytest.approx(0.02)


def observed(phases: list[str], rtts: list[float] | None = None) -> Observed:
    """Ten seconds in equal parts, sampled every 10 ms."""
    times = np.arange(1, 1001) / 100
    samples = pl.DataFrame(
        {
            "flow": np.zeros(1000),
            "t_s": times,
            "rtt_ms": [(rtts or [10.0])[place * len(rtts or [0]) // 1000] for place in range(1000)],
            "cwnd_bytes": np.full(1000, 10 * MSS),
            "phase": [phases[place * len(phases) // 1000] for place in range(1000)],
        }
    )
    curve = Curve(0, "flow", np.array([0.0, 10.0]), np.array([0.0, 100.0]))
    return Observed(0, 1, [{}], {}, samples, pl.DataFrame(), [curve])


def test_phases_are_spans_that_meet() -> None:
    phases = observed(["startup", "drain", "probe_bw_up", "probe_rtt"]).phases
    assert [name for name, _, _ in phases] == ["startup", "drain", "probe_bw_up", "probe_rtt"]
    assert phases[1][1:] == pytest.approx((2.51, 5.01))


def test_what_follows_a_phase() -> None:
    after = {"phase": "startup", "following": "drain"}
    assert followed_by(observed(["startup", "drain", "probe_bw"]), **after) == 1
    assert followed_by(observed(["startup", "probe_bw"]), **after) == 0
    assert followed_by(observed(["startup"]), **after) == 0, "it never ends"
    assert followed_by(observed(["drain"]), **after) is None
    probing = {"phase": "probe_bw", "following": "probe_rtt"}
    parts = ["probe_bw_down", "probe_bw_cruise", "probe_rtt"]
    assert followed_by(observed(parts), **probing) == 1
    assert never_left(observed(["startup"]), phase="startup") == 1
    assert never_left(observed(["startup", "drain"]), phase="startup") == 0


def test_a_case_needs_what_it_judges() -> None:
    bbr, other = observed(["startup", "probe_bw"]), observed(["slow_start"])
    assert needs.missing(["bbr-phases", "startup"], {"": [bbr]}) == ""
    assert "needs the phases of BBR; the stack reports slow_start" in needs.missing(
        ["bbr-phases"], {"": [other]}
    )
    assert needs.missing(["probe-bw-parts"], {"": [bbr]}) != ""


def test_a_trigger_places_the_event_at_the_start_of_a_phase() -> None:
    found = planned(Request(("bbr",), ("bbr3", "bbr"), ("B9",)))
    ours, other = found.subjects
    assert found.plan is not None
    (case,) = found.plan.cases
    (step,) = case.scenario.fields["topology"]["forward"]["rate_steps"]
    at_s = _native.parse_quantity("time", step["at"])
    assert 1 < at_s < 5, "after STARTUP, DRAIN, CRUISE, REFILL and UP"
    assert set(ours.labels.values()) == {case.label}
    assert other.reason == "the controller has no phase probe_bw_down in the first run"


def test_the_wait_for_probe_rtt_counts_from_the_newest_smaller_sample() -> None:
    probed = observed(["cruise"] * 8 + ["probe_rtt", "cruise"], [10.0, 9.0] + [12.0] * 8)
    found = since_newest_minimum(probed, phase="probe_rtt", from_s=0.0)
    assert found == pytest.approx(8.01 - 1.01, abs=0.02)
    never = observed(["cruise"], [10.0, 12.0])
    assert since_newest_minimum(never, phase="probe_rtt", from_s=0.0) == pytest.approx(9.99)


def test_every_suite_can_be_planned() -> None:
    assert suites.suites()
    for suite in suites.suites().values():
        ids = [case.id for case in suite.cases]
        assert len(ids) == len(set(ids)) > 0
        for case in suite.cases:
            assert case.procedure.endswith("."), case.id
            assert case.source
            assert case.checks
            assert set(case.needs) <= set(needs.NEEDS)
            for check in case.checks:
                assert case.script or check.measure in measures.MEASURES, check.measure
                assert case.script or {check.of, *check.against} <= set(case.variants)
                assert set(check.needs) <= set(needs.NEEDS)
                assert check.join in get_args(Join)


@pytest.mark.parametrize("name", list(suites.suites()))
def test_the_default_stacks_fit_the_scenarios(name: str) -> None:
    suite = suites.find(name)
    plain = [case.id for case in suite.cases if case.trigger is None]
    try:
        found = planned(Request((name,), cases=plain))
    except InputError as error:
        requires.foreign_stacks(error)
        raise
    assert found.plan is not None or all(case.script for case in suite.cases)
    for subject in found.subjects:
        own = stacks.controller(subject.stack)
        has_case = not subject.case.controllers or own in subject.case.controllers
        has_case &= not subject.case.hosts or stacks.host(subject.stack) in subject.case.hosts
        assert bool(subject.reason) != has_case, subject.reason


def test_controllers_are_recognised() -> None:
    given = ("cubic", "sack/cubic(hystart=off)", "rack(tlp=off)/reno", "noq/bbr3", "a/b.py:C")
    assert list(map(stacks.controller, given)) == ["cubic", "cubic", "reno", "bbr3", None]


def test_a_case_is_repeated_for_the_values_of_each() -> None:
    text = TINY.replace('id = "T1"', 'id = "T1-{buffer}"\neach = { buffer = ["1bdp", "2bdp"] }')
    assert [case.id for case in suites.parsed(text).cases] == ["T1-1bdp", "T1-2bdp", "T2"]


@pytest.mark.usefixtures("tiny")
def test_all_hold_or_fail_as_known(invoke: Invoke) -> None:
    result = invoke("conform", "--quiet", "--json", "--junit", "o.xml", "--markdown", "o.md")
    assert result.exit_code == 0, result.output
    loss, goodput, other = rows_of(result)
    assert (loss["outcome"], goodput["outcome"]) == (PASS, outcome.KNOWN)
    assert other["outcome"] == NOT_APPLICABLE
    assert other["reason"] == "a case of cubic"
    assert loss["criterion"] == "at most 0.1 share (Weir's bound)"
    assert loss["seeds"] == [1, 2]
    assert loss["margin"] == pytest.approx(0.1 - loss["value"])
    assert "no link carries twice its rate" in goodput["reason"]
    tests = _xml("o.xml")
    assert (tests.get("tests"), tests.get("failures"), tests.get("skipped")) == ("3", "0", "2")
    assert len(tests.findall("testsuite/testcase")) == 3
    text = Path("o.md").read_text(encoding="utf-8")
    assert "All criteria hold, or fail as known." in text


@pytest.mark.usefixtures("tiny")
def test_a_broken_controller_fails(invoke: Invoke) -> None:
    words = ("--stack", f"reno,{BROKEN}:FixedWindow", "--quiet", "--junit", "o.xml")
    result = invoke("conform", "tiny", *words, "--json")
    assert result.exit_code == 1, result.output
    bad = [row for row in rows_of(result) if not outcome.is_good(row)]
    assert {(row["case"], row["check"]) for row in bad} >= {("T1", "loss")}
    assert all("FixedWindow" in row["stack"] for row in bad)
    failures = _xml("o.xml").findall("testsuite/testcase/failure")
    assert len(failures) == len(bad)
    assert "required at most 0.1 share" in str(failures[0].get("message"))
    report = write(load(Path("results/conform/latest"))).read_text(encoding="utf-8")
    assert "Rows that are not as expected" in report
    assert "FixedWindow" in report


def test_a_case_may_be_about_stacks_of_other_projects() -> None:
    (case, *_) = suites.find("quic-recovery").cases
    assert stacks.concerns(case, "quinn/weir-cubic", is_named=True) == ""
    assert stacks.concerns(case, "contender:quiche(cc=cubic)", is_named=True) == ""
    assert "in quinn, noq" in stacks.concerns(case, "rack/cubic", is_named=True)
    assert "in quinn, noq" in stacks.concerns(case, "mine.py:Mine", is_named=True)
    assert stacks.controller("contender:quiche(version=0.26.0,cc=cubic)") == "cubic"


def test_recordings_of_linux_are_cases() -> None:
    linux = {case.id: case for case in suites.find("linux").cases}
    assert len(linux) >= 40
    assert not any("norack" in name or "-two-" in name for name in linux)
    goodput = linux["10m-q34-reno"].checks[0]
    assert (goodput.envelope.low, goodput.envelope.high) == pytest.approx(
        (0.98 * 9.556, 1.02 * 9.556)
    )
    assert linux["10m-q34-bbr"].seeds > linux["10m-q34-reno"].seeds == 1
    assert linux["1g-q3304-bbr"].checks[3].known


def test_a_recording_of_linux_is_repeated(invoke: Invoke) -> None:
    found = invoke("conform", "linux", "--case", "10m-q34-vegas", "--quiet", "--json")
    assert {row["outcome"] for row in rows_of(found)} == {PASS}
    name = f"{BROKEN}:FixedWindow"
    wrong = invoke("conform", "linux", "--case", "10m-q34-vegas", "--stack", name, "--quiet")
    assert wrong.exit_code == 1, wrong.output


def test_a_variable_that_never_has_a_value_has_no_column() -> None:
    run = observed(["startup"])
    assert list(run.column("cc.inflight_longterm_bytes")) == []
    assert measures.MEASURES["longest_with"](run, column="cc.inflight_shortterm_bytes") == 0


def test_known_failures_may_be_of_one_value_of_each() -> None:
    known = 'known = { reno = "no link carries twice its rate" }'
    text = TINY.replace(known, 'known = { "T1 reno" = "why", "T9 cubic" = "other" }')
    assert text != TINY
    reasons = text.replace("[scenarios]", '[reasons]\nwhy = "a longer reason"\n[scenarios]')
    (case, *_) = suites.parsed(reasons).cases
    assert case.checks[1].known == {"reno": "a longer reason"}


@pytest.mark.usefixtures("tiny")
def test_a_baseline_leaves_the_changes(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = ("conform", "tiny", "--stack", f"{BROKEN}:FixedWindow", "--quiet")
    assert invoke(*broken, "--out", "before").exit_code == 1
    same = invoke(*broken, "--baseline", "before/conform/latest", "--json")
    assert same.exit_code == 0, "what failed before is no regression"
    assert json.loads(same.stdout)["changes"] == []
    _only(monkeypatch, TINY.replace("high = 0.1", "high = 0"))
    assert invoke("conform", "--quiet", "--out", "strict").exit_code == 1
    _only(monkeypatch, TINY)
    fixed = invoke("conform", "--quiet", "--json", "--baseline", "strict/conform/latest")
    assert fixed.exit_code == 0
    assert json.loads(fixed.stdout)["changes"] == ["tiny T1, reno, loss: fail → pass"]
    _only(monkeypatch, TINY.replace("high = 0.1", "high = 0"))
    worse = invoke("conform", "--quiet", "--json", "--baseline", "results/conform/latest")
    assert worse.exit_code == 1


def test_an_unexpected_pass_is_reported(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    _only(monkeypatch, TINY.replace("low = 2", "low = 0.5"))
    result = invoke("conform", "--quiet", "--json")
    assert result.exit_code == 1
    assert [row["outcome"] for row in rows_of(result)][:2] == [PASS, outcome.UNEXPECTED]
    other = invoke("conform", "--quiet", "--json", "--seed", "7")
    assert other.exit_code == 0, "the list is about the suite's own seeds"


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nonsense",), "there is no suite 'nonsense'"),
        (("tiny", "tiny"), "suite tiny is given twice"),
        (("--stack", "reno,reno"), "reno is given twice"),
        (("--stack", "renoo"), "renoo"),
        (("--stack", "reno,"), "a name is empty"),
        (("--case", "T2"), "no case applies; the first: a case of cubic"),
        (("--case", "X*"), "--case X*: no such case; there are: T1, T2"),
        (("--baseline", "nowhere"), "--baseline nowhere: no results of weir conform"),
        (("--junit", "no/such/o.xml"), "its directory does not exist"),
        (("--world", "mars"), "there is no world 'mars'"),
    ],
)
def test_bad_input_is_one_message(invoke: Invoke, arguments: tuple[str, ...], message: str) -> None:
    result = invoke("conform", *arguments)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split())
    assert len(result.output.strip().splitlines()) == 1


@pytest.mark.usefixtures("tiny")
def test_a_failed_run_is_inconclusive(invoke: Invoke) -> None:
    Path("late.py").write_text(
        "import weir\n\n\nclass Late(weir.CongestionControl):\n"
        "    def on_ack(self, cx, ack):\n        1 / 0\n\n"
        "    def on_congestion(self, cx, event):\n        pass\n",
        encoding="utf-8",
    )
    options = ("--quiet", "--json", "--junit", "o.xml")
    result = invoke("conform", "--stack", "reno,late.py:Late", *options)
    assert result.exit_code == 1
    assert _xml("o.xml").get("errors") == "2"
    own = [row for row in rows_of(result) if "Late" in row["stack"] and row["case"] == "T1"]
    assert {row["outcome"] for row in own} == {INCONCLUSIVE}
    assert "division by zero" in own[0]["reason"]


def test_a_packet_script_is_a_case(invoke: Invoke) -> None:
    result = invoke("conform", "prr", "rack-tlp", "--stack", "rack/reno,cubic", "--quiet", "--json")
    assert result.exit_code == 0, result.output
    rows = {(row["case"], row["stack"]): row for row in rows_of(result)}
    assert rows["X1-one-of-20-lost", "rack/reno"]["outcome"] == PASS
    assert rows["T7-10-lost-1", "cubic"]["outcome"] == PASS
    assert rows["X3-tail-loss", "rack/reno"]["outcome"] == PASS
    assert rows["T7-10-lost-1", "rack/reno"]["reason"] == "a case of cubic"
    other = rows["X2b-15-of-20-lost-without-prr", "rack/reno"]
    assert (other["outcome"], other["reason"]) == (
        NOT_APPLICABLE,
        "a script of recovery scheme sack",
    )


def test_a_packet_script_judges_the_stack_that_it_names(invoke: Invoke) -> None:
    result = invoke("conform", "hystart", "--case", "H[12]-*", "--quiet", "--json")
    assert result.exit_code == 0, result.output
    assert {(row["stack"], row["outcome"]) for row in rows_of(result)} == {
        ("cubic(hystart=plus-plus)", PASS)
    }
    wrong = invoke("conform", "hystart", "--case", "H1-*", "--stack", "cubic", "--quiet")
    assert wrong.exit_code == 2
    assert "no case applies; the first: a script of cubic(hystart=plus-plus)" in wrong.output


def test_a_packet_script_shows_where_a_stack_departs(invoke: Invoke) -> None:
    # Without tail loss probes the last segment is not sent again after 2 SRTT.
    result = invoke("conform", "rack-tlp", "--stack", "rack(tlp=off)/reno", "--quiet", "--json")
    assert result.exit_code == 1, result.output
    rows = {row["case"]: row for row in rows_of(result)}
    failed = rows["X3-tail-loss"]
    assert (failed["outcome"], failed["value"]) == (FAIL, 0)
    assert failed["reason"].startswith("line 18: no packet until ")


def test_packet_scripts_judge_no_other_stacks() -> None:
    (case, *_) = suites.find("rack-tlp").cases
    assert "of Weir and of Linux" in scripts.why_not_applicable(case, "quinn/cubic", "sim")
    assert "run in the worlds sim" in scripts.why_not_applicable(case, "reno", "udp")
    assert scripts.why_not_applicable(case, "rack(tlp=off)/reno", "sim") == ""


def test_scripts_are_listed_and_not_run(invoke: Invoke) -> None:
    result = invoke("conform", "prr", "--dry-run")
    assert result.exit_code == 0
    assert result.output.strip().endswith("packet scripts")
    both = invoke("conform", "rate-limited", "--dry-run")
    assert "conform: 6 runs" in both.output
    assert "packet scripts" in both.output


def _row(**changed: object) -> outcome.Row:
    row = {
        **dict.fromkeys(("suite", "case", "check", "stack", "unit", "origin"), "x"),
        **dict.fromkeys(("source", "procedure", "world", "reason"), "y"),
        "criterion": "at most 1",
        "value": 2.0,
        "margin": -1.0,
        "outcome": FAIL,
        "seeds": [1],
    }
    return {**row, **changed}


def test_texts_are_escaped() -> None:
    rows = [_row(reason='<&"|\x1b')]
    assert _parsed(junit(rows)).find("testsuite/testcase/failure") is not None
    assert "\\|" in words.markdown(rows)


def test_a_new_row_that_holds_is_no_change() -> None:
    assert baseline.changes([_row(outcome=PASS)], []) == []
    (change,) = baseline.changes([_row()], [])
    assert change.is_regression


def test_a_strained_machine_is_inconclusive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a reader of JUnit XML or Markdown learns why."""
    strained = "bad in 1 of 1 runs: 3 % of packets left late"
    found = planned(Request(("linux",), cases=("10m-q34-vegas",), repeat=1))
    assert found.plan is not None
    results = run_plan(found.plan, out=tmp_path, show_progress=False)
    before = outcome.rows(found, results)
    monkeypatch.setattr(Results, "health", lambda *_: strained)
    rows = outcome.rows(found, results)
    decided = [row for row in before if row["verdict"] in (PASS, FAIL)]
    assert decided
    assert {row["health"] for row in before} == {None}
    for row, then in zip(before, rows, strict=True):
        expected = INCONCLUSIVE if row in decided else row["verdict"]
        assert (then["verdict"], then["value"]) == (expected, row["value"])
        assert then["health"] == strained or then["verdict"] == NOT_APPLICABLE
    assert strained in words.markdown(rows)
    assert f'name="health" value="{strained}"' in junit(rows)
