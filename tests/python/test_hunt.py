"""`weir search`: planted and known weaknesses, shrinking, and the same result whatever happens."""

from __future__ import annotations

import json
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke, started
from test_schemas import check

from weir.base.errors import InputError
from weir.running.execution import Execution
from weir.scenario.source import SIM
from weir.search import goals
from weir.search import space as spaces
from weir.search.findings import Target, decisive
from weir.search.hunt import SearchOptions, search
from weir.search.journal import Answer, Journal

BOUNDS = """
"topology.rate" = "{1mbit..4mbit}"
"topology.rtt" = "{10ms..100ms}"
"topology.queue" = "{0.2bdp..8bdp}"
"topology.forward.loss?" = "{0.1%..2% log}"
"flow.0.initial_window?" = "{2..20}"
"""
SHORT = ("--space", "bounds.toml", "--set", "measure.duration=5s", "--quiet")
BLOAT = ("search", "bufferbloat", "--stack", "scalable", *SHORT, "--budget", "64")


@pytest.fixture(autouse=True)
def bounds(tmp_path: Path) -> None:
    (tmp_path / "bounds.toml").write_text(BOUNDS, "utf-8")


def found(invoke: Invoke, *words: str) -> dict[str, Any]:
    result = invoke(*words, "--json")
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    check("search", document)
    return dict(document["rows"][0])


def newest(tmp_path: Path) -> Path:
    return max((tmp_path / "results/search").iterdir())


def test_a_known_weakness_is_found_shrunk_and_becomes_a_case(
    invoke: Invoke, tmp_path: Path
) -> None:
    """go-back-N in a window larger than path and queue sends most packets again."""
    words = ("search", "regress", "rack/reno", "go-back-n(40)/none", *SHORT, "--budget", "200")
    row = found(invoke, *words)
    assert row["found"]
    assert row["shown"][0] >= 16
    assert row["runs_until_found"] <= 200
    assert len(row["keys"]) <= min(8, len(row["keys_before"]))
    folder = newest(tmp_path)
    again = invoke("run", folder / "found.toml", "--no-report", "--quiet", "--json")
    assert again.exit_code == 0, again.stderr
    judged = invoke("conform", folder / "conform.toml", "--no-report", "--quiet", "--json")
    (verdict,) = json.loads(judged.stdout)["rows"]
    assert (judged.exit_code, verdict["outcome"]) == (1, "fail"), judged.stderr
    better = ("--stack", "rack/reno")
    judged = invoke("conform", folder / "conform.toml", *better, "--no-report", "--quiet")
    assert judged.exit_code == 0, judged.stdout


def test_what_one_seed_shows_hides_no_failure_of_all(invoke: Invoke) -> None:
    """The fault is that of cloudflare/quiche #2370; one seed shows a lossy network as worse."""
    words = ("search", "stall", "--stack", "cubic(idle=recovery)", "--quiet", "--budget", "300")
    row = found(invoke, *words)
    assert row["found"]
    assert any("_steps" in key for key in row["keys"]), "losses or a pause at first"


def test_the_same_search_gives_the_same_result_with_any_workers(
    invoke: Invoke, tmp_path: Path
) -> None:
    one = found(invoke, *BLOAT, "--jobs", "1")
    journal = (newest(tmp_path) / "journal.jsonl").read_text("utf-8")
    assert found(invoke, *BLOAT, "--jobs", "3") == one
    assert found(invoke, *BLOAT, "--seed", "2") != one

    def answers(text: str) -> set[str]:
        return {line for line in text.splitlines() if '"key"' in line}

    other = sorted((tmp_path / "results/search").iterdir())[-2] / "journal.jsonl"
    assert answers(other.read_text("utf-8")) == answers(journal)


def test_workers_in_other_processes_give_the_same_result(tmp_path: Path) -> None:
    (hunt,) = goals.hunts(["bufferbloat"], "scalable", None)
    sets = (("measure.duration", "3s"),)
    target = Target.of(hunt, spaces.read(tmp_path / "bounds.toml"), sets, SIM)
    options = SearchOptions(budget="32", shrink=False)
    one = search(target, options, Execution(out=tmp_path, jobs=1))
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        other = search(target, options, Execution(out=tmp_path, executor=pool))
    assert replace(one, journal="") == replace(other, journal="")


def test_a_journal_without_its_end_is_read(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path, "search", {"a": 1}, resume=False)
    journal.keep("one", Answer([1.5, None]))
    assert journal.end_batch(0, 2.5) == 2.5
    journal.close()
    file = journal.path / "journal.jsonl"
    file.write_text(file.read_text("utf-8") + '{"key": "two", "val', "utf-8")
    again = Journal.open(tmp_path, "search", {"a": 1}, resume=True)
    assert again.answers == {"one": Answer([1.5, None])}
    assert again.end_batch(0, 99.0) == 2.5, "the time of the first call counts"
    with pytest.raises(InputError, match="nothing to resume"):
        Journal.open(tmp_path, "search", {"a": 2}, resume=True)


def test_a_killed_search_goes_on_to_the_same_result(invoke: Invoke, tmp_path: Path) -> None:
    words = (*BLOAT, "--no-stop", "--jobs", "1")
    with started(*words, cwd=tmp_path) as process:
        end = time.monotonic() + 60
        while not list(tmp_path.glob("results/search/*/journal.jsonl")):
            assert time.monotonic() < end
            time.sleep(0.05)
        time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
    (killed,) = (tmp_path / "results/search").iterdir()
    assert not (killed / "answer.json").exists()
    resumed = found(invoke, *words, "--resume")
    assert newest(tmp_path) == killed
    whole = found(invoke, *words)
    assert whole == resumed
    refused = invoke(*words, "--resume")
    assert refused.exit_code == 2
    assert "nothing to resume" in refused.stderr


def test_an_expression_of_ones_own_over_two_stacks(invoke: Invoke) -> None:
    short = (*SHORT, "--set", "measure.warmup=1s", "--budget", "32")
    words = ("search", "--stack", "vegas", "--against", "cubic", *short)
    row = found(invoke, *words, "--minimise", 'share("vegas")')
    assert row["goal"] == "worst"
    assert row["threshold"] is None
    assert row["value"]["mean"] < 0.2
    row = found(invoke, *words, "--maximise", "old(goodput) - goodput")
    assert row["direction"] == "maximise"


def test_what_is_not_found_is_reported_with_the_worst(invoke: Invoke) -> None:
    short = (*SHORT, "--set", "measure.warmup=2s", "--budget", "16")
    row = found(invoke, "search", "stall", "--stack", "reno", *short)
    assert not row["found"]
    assert row["sentence"].startswith("stall: not found in 16 runs; the worst, beyond 0.05 in 0 of")


def test_the_output_for_people_names_scenario_case_and_picture(
    invoke: Invoke, tmp_path: Path
) -> None:
    words = [word for word in BLOAT if word != "--quiet"]
    result = invoke(*words, "--jobs", "1")
    assert result.exit_code == 0, result.stderr
    assert "bufferbloat: " in result.stdout
    assert "Without topology." in result.stdout
    folder = newest(tmp_path)
    assert {"found.toml", "conform.toml", "moment.svg"} <= {f.name for f in folder.iterdir()}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("starve",), "name a stack"),
        (("starved", "--stack", "bbr"), "did you mean starve"),
        (("starve", "--stack", "bbrr"), "bbrr"),
        (("--stack", "bbr", "--minimise", "fct", "--maximise", "fct"), "one of them"),
        (("--stack", "bbr", "--maximise", "old(fct)"), "--against STACK"),
        (("starve", "--stack", "bbr", "--budget", "none"), "a number of runs"),
    ],
)
def test_bad_input_is_refused(invoke: Invoke, words: tuple[str, ...], reason: str) -> None:
    result = invoke("search", *words, *SHORT)
    assert result.exit_code == 2, result.output
    assert reason in result.stderr


def test_the_decisive_moment_is_when_a_flow_falls_behind_for_good() -> None:
    first = [(float(t), 5.0) for t in range(10)]
    second = [(float(t), 5.0 if t in (0, 1, 2, 4) else 0.5) for t in range(10)]
    assert decisive({"first": first, "second": second}) == 5.0
    assert decisive({"first": first, "second": first}) is None
    assert decisive({"only": [(0.0, 1.0), (1.0, 0.0), (2.0, 0.0)]}) == 1.0
    assert decisive({}) is None
