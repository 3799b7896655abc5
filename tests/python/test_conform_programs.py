"""Suite `quic-recovery` for programs: which criteria apply, and that each finds its mistake."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import requires
from conftest import Invoke
from quic_program import MISTAKES
from test_conform import observed, rows_of
from test_contenders import needed

from weir.conform import measures
from weir.conform.cases import stacks, suites
from weir.conform.cases.bounds import FAIL, PASS
from weir.conform.outcome import Row
from weir.contenders import catalogue
from weir.dynamics.curves import Curve

QUIC = [name for name in catalogue.names() if catalogue.find(name).qlog is not None]
PROGRAM = Path(__file__).with_name("quic_program.py")
QUICK = ("large-start", "hasty", "small-initial")
"""Mistakes that a second of a run shows."""


@pytest.fixture
def program(tmp_path: Path) -> str:
    """The definition of the program with mistakes; returns its stack."""
    run = ["python3", str(PROGRAM)]
    server = [*run, "server", "{port}", "{out}/server.sqlog", "{mistake}"]
    client = [*run, "client", "{server_ip}", "{port}", "{bytes}", "{mistake}"]
    path = tmp_path / "program.toml"
    path.write_text(
        f"""
name = "program"
about = "QUIC's rules, or one mistake"
transport = "udp"
sender = "server"
[server]
run = {json.dumps(server)}
ready = "port:{{port}}"
[client]
run = {json.dumps(client)}
bulk = []
file = []
[parameters.cc]
values = ["reno"]
default = "reno"
[parameters.mistake]
values = {json.dumps(["none", *MISTAKES])}
default = "none"
[collect]
qlog = "*.sqlog"
""",
        encoding="utf-8",
    )
    return f"contender:{path}"


def _judged(invoke: Invoke, given: Sequence[str], *cases: str) -> list[Row]:
    wanted = [word for case in cases for word in ("--case", case)]
    # An interval needs several runs.
    repeat = "3" if "Q15" in cases else "1"
    options = ("--repeat", repeat, "--world", "kernel", "--virtual", "--quiet", "--json")
    return rows_of(
        invoke("conform", "quic-recovery", "--stack", ",".join(given), *wanted, *options)
    )


def test_twelve_criteria_and_more_apply_to_every_quic_program() -> None:
    assert set(QUIC) >= {"ngtcp2", "quic-go", "quiche", "quinn", "s2n-quic"}
    for name in QUIC:
        cases = [
            case
            for case in suites.find("quic-recovery").cases
            if not stacks.concerns(case, f"contender:{name}", is_named=True)
        ]
        assert sum(len(case.checks) for case in cases) >= 12, name
        assert all("RFC 9" in case.source for case in cases)


def test_every_case_of_programs_has_a_mistake_that_it_finds() -> None:
    cases = suites.find("quic-recovery").cases
    of_programs = {case.id for case in cases if not case.hosts or "contender" in case.hosts}
    # Q8 is Q3 with another bound.
    assert set(MISTAKES.values()) == of_programs - {"Q8"}


def test_a_program_without_a_qlog_is_not_concerned() -> None:
    (case, *_) = suites.find("quic-recovery").cases
    assert "a case of stacks in" in stacks.concerns(case, "contender:iperf3", is_named=True)
    assert stacks.controller("contender:quinn(cc=newreno)") == "reno"
    assert stacks.controller("contender:quinn") == "cubic"
    assert stacks.controller("contender:quic-go") == "reno"


def test_what_links_show_of_datagrams() -> None:
    run = observed(["none"])
    links = (
        {"delivered_packets": 3, "delivered_bytes": 3 * 1228},
        {
            "delivered_packets": 2,
            "delivered_bytes": 2 * 628,
        },
    )
    curve = Curve(0, "flow", np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.0, 8.0]))
    run = type(run)(0, 1, [{}], links[0], run.all_samples, run.queues, [curve], reverse=links[1])
    found = {name: measures.MEASURES[name](run) for name in ("answer_ratio", "mean_datagram_back")}
    assert found == {"answer_ratio": 3.0, "mean_datagram_back": 600}
    assert measures.MEASURES["until_delivered"](run) == 1.0


@requires.guest
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_program_with_quics_rules_passes(invoke: Invoke, program: str) -> None:
    rows = _judged(invoke, [program])
    applied = [row for row in rows if row["value"] is not None and row["case"] != "Q15"]
    assert len(applied) >= 12
    assert {row["verdict"] for row in applied} == {PASS}


@requires.guest
@pytest.mark.parametrize(
    "mistake", [pytest.param(m, marks=() if m in QUICK else pytest.mark.slow) for m in MISTAKES]
)
def test_a_mistake_is_found(invoke: Invoke, program: str, mistake: str) -> None:
    rows = _judged(invoke, [f"{program}(mistake={mistake})"], MISTAKES[mistake])
    assert FAIL in {row["verdict"] for row in rows}, rows


@requires.guest
@pytest.mark.parametrize("name", QUIC)
def test_a_real_program_is_judged(invoke: Invoke, name: str) -> None:
    rows = _judged(invoke, [needed(name)], "Q1", "Q12", "Q16")
    assert all(row["verdict"] in (PASS, FAIL) for row in rows), rows
