"""Result directories: what is kept, when, and under which name."""

from __future__ import annotations

import json
import shutil
import signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from conftest import PATIENCE_S, started, until

import weir
from weir.base.errors import InputError, RunInterruptedError
from weir.results.parts import Ended
from weir.results.results import TABLES
from weir.results.store import RunDirectory
from weir.running import runner
from weir.scenario.plans import Comparison
from weir.scenario.source import Effective
from weir.scenario.sweep import Plan

LONG = (
    "compare",
    "reno",
    "--duration",
    "300s",
    "--rate",
    "20mbit",
    "--repeat",
    "60",
    "--jobs",
    "2",
)
"""A comparison that takes long enough to be interrupted."""


@pytest.fixture
def plan() -> Plan:
    return Comparison(stacks=("reno", "cubic"), duration="1s", loss="1%", repeat=2).plan()


def test_results_can_be_loaded(plan: Plan, tmp_path: Path) -> None:
    path = runner.run_plan(plan, tmp_path)
    results = weir.load(tmp_path / "compare" / "latest")
    assert results.path == path
    assert results.runs["label"].to_list() == ["reno", "cubic"] * 2
    assert results.runs["seed"].to_list() == [1, 1, 2, 2]
    for name in TABLES:
        table = results.scan(name).collect()
        assert table.columns[0] == "run", name
        assert isinstance(getattr(results, name), pl.DataFrame)
    assert results.flows["run"].to_list() == [0, 1, 2, 3]
    assert results.flows["stack"].to_list() == ["rack/reno", "rack/cubic"] * 2
    assert results.samples["run"].is_sorted()
    assert not (path / "parts").exists()


def test_an_interrupt_while_parts_are_removed_loses_no_table(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C after the results have their name: what is left of the parts is not joined again."""
    removed = shutil.rmtree

    def interrupted(path: Path, **options: Any) -> None:
        if Path(path).name == "parts":
            monkeypatch.setattr(shutil, "rmtree", removed)
            removed(sorted(Path(path).iterdir())[0])
            raise KeyboardInterrupt
        removed(path, **options)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(RunInterruptedError):
        runner.run_plan(plan, tmp_path)
    results = weir.load(tmp_path / "compare" / "latest")
    assert results.manifest["complete"]
    assert results.flows["run"].to_list() == [0, 1, 2, 3]
    assert not (results.path / "parts").exists()


def test_the_manifest_says_how_to_do_it_again(plan: Plan, tmp_path: Path) -> None:
    results = weir.load(runner.run_plan(plan, tmp_path))
    manifest = results.manifest
    assert manifest["complete"]
    assert manifest["seeds"] == [1, 2]
    assert manifest["command"].startswith("weir compare reno cubic --rate 10mbit")
    assert manifest["cases"][1]["scenario"]["flow"][0]["stack"] == "rack/cubic"
    assert manifest["health"]["verdict"] == "good"
    assert manifest["host"]["cores"] >= 1


def test_any_executor_gives_the_same_results(plan: Plan, tmp_path: Path) -> None:
    threads = weir.load(runner.run_plan(plan, tmp_path / "threads"))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        processes = weir.load(runner.run_plan(plan, tmp_path / "processes", executor=pool))
    for name in TABLES:
        assert threads.scan(name).collect().equals(processes.scan(name).collect()), name


def test_an_unfinished_directory_is_found_again_and_only_the_rest_is_run(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = RunDirectory.create(tmp_path, plan)
    first = plan.runs[0]
    directory.keep([Ended(first, runner.execute(first.case.scenario, first.seed))])
    assert not list((tmp_path / "compare").glob("2*")), "no final name before it is complete"
    del directory  # another process may go on

    executed = []
    sound = runner.execute

    def watched(scenario: Effective, seed: int, *where: Any) -> dict[str, pl.DataFrame]:
        executed.append((scenario, seed))
        return sound(scenario, seed, *where)

    monkeypatch.setattr(runner, "execute", watched)
    resumed = weir.load(runner.run_plan(plan, tmp_path, resume=True))
    assert len(executed) == 3
    monkeypatch.undo()
    whole = weir.load(runner.run_plan(plan, tmp_path / "whole"))
    for name in TABLES:
        assert resumed.scan(name).collect().equals(whole.scan(name).collect()), name


def test_the_newest_unfinished_directory_is_resumed(plan: Plan, tmp_path: Path) -> None:
    older = RunDirectory.create(tmp_path, plan)
    first = plan.runs[0]
    older.keep([Ended(first, runner.execute(first.case.scenario, first.seed))])
    del older  # another process may go on
    (path,) = (tmp_path / "compare").iterdir()
    path.rename(path.with_name(f".2020{path.name.removeprefix('.')[4:]}"))
    assert RunDirectory.reopen(tmp_path, plan).done == 1
    RunDirectory.create(tmp_path, plan)
    assert RunDirectory.reopen(tmp_path, plan).done == 0


def test_the_health_of_runs_in_real_time_is_that_of_the_worst() -> None:
    measured: dict[str, Any] = {"late_ms_max": 3.0, "unasked_drops": 0, "cpu_ratio": None}
    summaries = [
        {**measured, "health": "good", "late_ms_p99": 0.5},
        {**measured, "health": "late", "late_ms_p99": 2.0, "late_ms_max": 9.0},
        {**measured, "health": None, "late_ms_p99": 99.0},
    ]
    plan: Any = SimpleNamespace(is_real_time=True)
    directory: Any = SimpleNamespace(failures={}, summaries=summaries)
    assert runner._health(plan, directory) == {
        "verdict": "strained in 1 of 2 runs",
        "warnings": ["late"],
        "worst": {"late_ms_p99": 2.0, "late_ms_max": 9.0, "unasked_drops": 0, "cpu_ratio": None},
    }


def test_resuming_another_plan_is_refused(plan: Plan, tmp_path: Path) -> None:
    RunDirectory.create(tmp_path, plan)
    other = Comparison(stacks=("reno",), duration="1s", repeat=2).plan()
    with pytest.raises(InputError, match="nothing to resume"):
        RunDirectory.reopen(tmp_path, other)


def test_the_tenth_directory_of_a_second_is_newer_than_the_second(
    plan: Plan, tmp_path: Path
) -> None:
    home = tmp_path / plan.name
    for number in ("", "-2", "-10", "-9"):
        (home / f"2026-01-01T00-00-00Z-{plan.digest[:8]}{number}" / "parts").mkdir(parents=True)
    found = RunDirectory.reopen(tmp_path, plan)
    assert "-10." in found.path.name


def test_a_directory_that_is_being_written_is_not_resumed(plan: Plan, tmp_path: Path) -> None:
    writing = RunDirectory.create(tmp_path, plan)
    with pytest.raises(InputError, match="still being written"):
        RunDirectory.reopen(tmp_path, plan)
    del writing
    assert RunDirectory.reopen(tmp_path, plan).done == 0


def test_results_of_the_future_are_refused(plan: Plan, tmp_path: Path) -> None:
    path = runner.run_plan(plan, tmp_path)
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "schema": 99}))
    with pytest.raises(InputError, match="schema 99"):
        weir.load(path)


def test_pandas_gets_the_same_table(plan: Plan, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    results = weir.load(runner.run_plan(plan, tmp_path))
    assert list(results.to_pandas("flows")["stack"]) == results.flows["stack"].to_list()


def test_ctrl_c_keeps_the_finished_runs(tmp_path: Path) -> None:
    with started(*LONG, "--out", tmp_path) as process:
        finished = _wait_for_parts(tmp_path)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "--resume" in stderr
    assert stderr.count("\n") == 1
    results = weir.load(tmp_path / "compare" / "latest")
    assert not results.manifest["complete"]
    assert results.runs.height >= finished
    assert results.flows["run"].n_unique() == results.runs.height < 60

    directory = RunDirectory.reopen(tmp_path, _long_plan())
    assert directory.done == results.runs.height


def test_ctrl_c_does_not_wait_for_runs_in_progress(tmp_path: Path) -> None:
    endless = ("--set", "measure.duration=1000000s", "--set", "measure.sample_interval=1000s")
    words = ("run", "two-flows", *endless, "--repeat", "2", "--jobs", "2", "--out", tmp_path)
    with started(*words) as process:
        until(lambda: any(tmp_path.glob("two-flows/.*")))
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, stderr
    assert not (tmp_path / "two-flows" / "latest").exists()


def test_a_killed_command_can_be_resumed(tmp_path: Path) -> None:
    with started(*LONG, "--out", tmp_path) as process:
        finished = _wait_for_parts(tmp_path)
        process.kill()
    assert not (tmp_path / "compare" / "latest").exists()
    directory = RunDirectory.reopen(tmp_path, _long_plan())
    assert finished <= directory.done < 60
    assert len(directory.pending) == 60 - directory.done


def _long_plan() -> Plan:
    return Comparison(stacks=("reno",), duration="300s", rate="20mbit", repeat=60).plan()


def _wait_for_parts(root: Path) -> int:
    """Waits until runs have finished and says how many."""

    def finished() -> int:
        parts = root.glob("compare/.*/parts/*/run.json")
        return sum(not file.parent.suffix for file in parts)  # they have their names

    until(lambda: finished() > 0)
    return finished()
