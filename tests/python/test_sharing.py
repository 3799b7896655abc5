"""Changes of who is there, put together over the repeats of a case."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from conftest import Invoke
from test_dynamics import curve

import weir
from weir.comparison.tables import results_html
from weir.dynamics.curves import Curve
from weir.dynamics.sharing import changes, observed, per_run
from weir.report.compose import compose
from weir.statistics.censoring import summarised

_STEADY = [10.0] * 10 + [5.0] * 10 + [9.8] * 10


def _run() -> list[Curve]:
    guest = curve([5.0] * 10, start_s=10, left_s=20, flow=1)
    return [curve(_STEADY, flow=0), guest]


def test_a_run_changes_when_flows_come_and_go() -> None:
    found = changes(_run())
    assert [(c.joined, c.left) for c in found] == [
        (("flow-0",), ()),
        (("flow-1",), ()),
        ((), ("flow-1",)),
    ]
    assert [(c.epoch.start_s, c.epoch.end_s) for c in found] == [(0, 10), (10, 20), (20, 30)]


def test_flows_that_start_together_are_one_change() -> None:
    flows = [curve([5.0] * 12, flow=0), curve([5.0] * 10, start_s=0.5, flow=1)]
    (both,) = changes(flows)
    assert both.joined == ("flow-0", "flow-1")
    assert both.epoch.start_s == 0.5


def test_what_lasts_too_short_is_not_judged() -> None:
    starts = (0, 2, 4)  # the second is followed by the third after 2 s
    flows = [curve([3.0] * (20 - at), start_s=at, flow=i) for i, at in enumerate(starts)]
    assert [c.joined for c in changes(flows)] == [("flow-0",), ("flow-1",), ("flow-2",)]
    assert [o.event for o in observed([flows], [1.0])] == ["flow-2 starts"]


def test_repeats_are_summarised_by_change() -> None:
    came, went = observed([_run(), _run()], [1.0, 2.0])
    assert (came.event, came.at_s) == ("flow-1 starts", 10)
    assert (went.event, went.at_s) == ("flow-1 ends", 20)
    assert {b: w.words() for b, w in came.converged.items()} == {
        1.0: "2 of 2 ended, median 0 s",
        2.0: "2 of 2 ended, median 0 s",
    }
    assert came.reclaimed == {}
    assert came.jain.mean == 1
    assert came.newcomers.mean == pytest.approx(0.5)
    assert went.converged == {}
    assert went.reclaimed[1.0].median_s == 0
    assert went.newcomers.mean is None


def test_the_indices_of_a_run_are_of_the_time_that_all_share() -> None:
    unfair = [curve([9.0] * 10, flow=0), curve([1.0] * 10, flow=1)]
    found = per_run({0: _run(), 1: unfair, 2: _run()[:1]})
    assert found["jain_index_common"].to_list() == [1, pytest.approx(100 / 164), None]
    assert found["jain_index_converged_mean"].to_list() == [1, None, None]
    assert found["jain_index_converged_min"].to_list() == [1, None, None]
    assert per_run({}).schema["run"] == pl.UInt32


def test_json_tells_what_followed_a_change(invoke: Invoke, tmp_path: Path) -> None:
    scenario = tmp_path / "short.toml"
    scenario.write_text(
        'name = "short"\n[topology]\nrate = "10mbit"\nrtt = "20ms"\nqueue = "1bdp"\n'
        '[[flow]]\nname = "first"\nstack = "reno"\n'
        '[[flow]]\nname = "late"\nstack = "reno"\nstart = "2s"\nstop = "14s"\n'
        '[measure]\nduration = "20s"\n'
    )
    result = invoke("run", scenario, "--repeat", "1", "--json", "--quiet")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)["rows"]
    came, went = row["changes"]
    assert (came["joined"], came["left"], came["at_s"]) == (["late"], [], 2.0)
    assert [entry["bin_s"] for entry in came["convergence"]] == [0.1, 1.0]
    assert all(entry["n"] == 1 for entry in came["convergence"])
    assert came["newcomers_share"]["mean"] == pytest.approx(0.5, abs=0.15)
    assert (went["joined"], went["left"]) == ([], ["late"])
    assert went["reclaim"][0]["ended"] == 1
    assert row["jain_index_common"]["mean"] > 0.9


@pytest.fixture(scope="module")
def late_comer(tmp_path_factory: pytest.TempPathFactory) -> weir.Results:
    return weir.run(
        "late-comer",
        sets={"measure.duration": "30s", "flow.1.start": "8s", "flow.1.stop": "22s"},
        sweep={"flow.*.stack": ["reno", "vegas"]},
        repeat=2,
        out=tmp_path_factory.mktemp("results"),
        show_progress=False,
    )


def test_the_report_says_what_followed_in_words(late_comer: weir.Results) -> None:
    found = compose(late_comer)
    (section,) = (s for s in found.sections if s.title == "When flows come and go")
    reno = [point for point in section.points if point.startswith("reno, ")]
    assert len(reno) == len(section.points) / 2 == 2
    converged = summarised(late_comer.convergence("reno", bin_s=1.0).values())
    assert f"{converged.ended} of 2 repeats share fairly" in reno[0]
    assert "guest starts at 8.0" in reno[0]
    assert "guest ends at 22 s: 90 % of what was set free is taken in 2 of 2 repeats" in reno[1]
    assert [table.title for table in section.tables] == [
        "Sharing after a change",
        "Taking what was left",
    ]
    (figure,) = section.figures
    assert figure.name == "jain"
    assert figure.data["case"].unique().sort().to_list() == ["reno", "vegas"]
    assert figure.data["t_s"].is_between(8, 22).all()
    assert figure.data["jain_index"].is_between(0.5, 1).all()
    texts = json.dumps(figure.spec)
    assert "guest starts" in texts
    assert "guest ends" in texts


def test_the_terminal_shows_changes_and_only_later_ones(late_comer: weir.Results) -> None:
    assert "guest starts" in results_html(late_comer)
    together = observed([[curve([5.0] * 9, flow=0), curve([5.0] * 9, flow=1)]], [1.0])
    assert [change.newcomers.n for change in together] == [0]


def test_a_report_of_one_flow_has_no_such_section(tmp_path: Path) -> None:
    results = weir.compare("reno", duration="2s", repeat=1, out=tmp_path, show_progress=False)
    assert "When flows come and go" not in [s.title for s in compose(results).sections]
