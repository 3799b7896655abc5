"""Programs in the scenarios and results of others: none of them runs unless the user says so."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from conftest import SHORT, Invoke
from test_congestion import AIMD

import weir
from weir.base.errors import InputError
from weir.cli import plans
from weir.controllers import trust
from weir.running import runner
from weir.running.execution import run_plan
from weir.scenario.plans import Comparison
from weir.scenario.source import Source

RAN = "it-ran"
"""The file that the foreign program makes."""

FOREIGN = f"open({RAN!r}, 'w').close()\n{AIMD}"

SCENARIO = f"""name = "foreign"
[[flow]]
stack = "theirs.py:Mine"
[measure]
duration = "1s"
[controllers]
"theirs.py" = '''{FOREIGN}'''
"""

RADIO = SCENARIO.replace("[[flow]]", '[topology]\nkind = "radio"\n[[flow]]')


@pytest.fixture(autouse=True)
def nothing_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "_trusted", set())


@pytest.fixture
def results(invoke: Invoke) -> Path:
    """Results whose manifest holds the program, as another user would send them."""
    Path("foreign.toml").write_text(SCENARIO, encoding="utf-8")
    done = invoke("run", "foreign.toml", "--trust-controllers", "--quiet")
    assert done.exit_code == 0, done.output
    Path(RAN).unlink()
    trust._trusted.clear()
    return Path("results/foreign/latest")


VERBS = {
    "run": ("run", "foreign.toml"),
    "dry run": ("run", "foreign.toml", "--dry-run"),
    "world udp": ("run", "foreign.toml", "--world", "udp"),
    "sweep of its own": ("run", "swept.toml", "--dry-run"),
    "ui": ("ui", "radio.toml", "--save", "radio.html"),
    "qlog": ("export", "results/foreign/latest", "-f", "qlog"),
    "pcapng": ("export", "results/foreign/latest", "-f", "pcapng"),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("results")
def test_a_program_of_others_is_refused_with_its_hash(verb: str, invoke: Invoke) -> None:
    sweep = '[sweep]\n"flow.0.stack" = ["theirs.py:Mine"]\n'
    swept = SCENARIO.replace('stack = "theirs.py:Mine"', 'stack = "reno"') + sweep
    Path("swept.toml").write_text(swept, encoding="utf-8")
    Path("radio.toml").write_text(RADIO, encoding="utf-8")
    done = invoke(*VERBS[verb])
    assert done.exit_code == 2, done.output
    assert not Path(RAN).exists()
    assert "theirs.py" in done.stderr
    assert hashlib.sha256(FOREIGN.encode()).hexdigest() in done.stderr
    assert "--trust-controllers" in done.stderr
    assert done.stderr.count("\n") == 1
    invoke(*VERBS[verb], "--trust-controllers")
    assert Path(RAN).exists()


def test_what_only_reads_results_runs_nothing(results: Path, invoke: Invoke) -> None:
    assert weir.load(results).runs.height == 1
    for verb in (("report", results), ("diff", results, results), ("export", results, "-f", "csv")):
        assert invoke(*verb).exit_code == 0
    assert not Path(RAN).exists()


def test_a_terminal_is_asked(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("foreign.toml").write_text(SCENARIO, encoding="utf-8")
    asked = []

    def answer(text: str, *, err: bool) -> bool:
        assert err
        asked.append(text)
        return len(asked) > 1

    monkeypatch.setattr(plans, "_is_interactive", lambda: True)
    monkeypatch.setattr("typer.confirm", answer)
    assert invoke("run", "foreign.toml", "--dry-run").exit_code == 2
    assert not Path(RAN).exists()
    assert invoke("run", "foreign.toml", "--dry-run").exit_code == 0
    assert Path(RAN).exists()
    assert len(asked) == 2
    assert "theirs.py" in asked[0]
    assert hashlib.sha256(FOREIGN.encode()).hexdigest() in asked[0]


def test_a_file_that_the_user_names_is_his_own(invoke: Invoke) -> None:
    Path("own.py").write_text(AIMD, encoding="utf-8")
    done = invoke("compare", "own.py:Mine", "newreno/own.py:Mine(beta=0.7)", *SHORT)
    assert done.exit_code == 0, done.output
    Path("plain.toml").write_text('[[flow]]\nstack = "reno"\n', encoding="utf-8")
    for option in ("--set", "--sweep"):
        trust._trusted.clear()
        done = invoke("run", "plain.toml", option, "flow.0.stack=own.py:Mine", "--dry-run")
        assert done.exit_code == 0, done.output


def test_a_scenario_cannot_put_its_text_in_place_of_a_file_that_the_user_names(
    invoke: Invoke,
) -> None:
    Path("own.py").write_text(AIMD, encoding="utf-8")
    Path("foreign.toml").write_text(SCENARIO.replace("theirs.py", "own.py"), encoding="utf-8")
    for option in ("--set", "--sweep"):
        done = invoke("run", "foreign.toml", option, "flow.0.stack=own.py:Mine", "--dry-run")
        assert done.exit_code == 2, done.output
        assert not Path(RAN).exists()


def test_a_folder_of_others_cannot_pass_its_file_for_one_that_the_user_names(
    invoke: Invoke,
) -> None:
    Path("own.py").write_text(AIMD, encoding="utf-8")
    folder = Path("theirs")
    folder.mkdir()
    (folder / "own.py").write_text(FOREIGN, encoding="utf-8")
    (folder / "plain.toml").write_text('[[flow]]\nstack = "reno"\n', encoding="utf-8")
    named = ("--set", "flow.0.stack=own.py:Mine")
    done = invoke("run", folder / "plain.toml", *named, "--dry-run")
    assert done.exit_code == 2, done.output
    assert not Path(RAN).exists()


def test_python_refuses_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(weir.ScenarioError, match=r"theirs\.py.*trust_controllers=True"):
        weir.run(SCENARIO, show_progress=False)
    assert not Path(RAN).exists()
    weir.run(SCENARIO, show_progress=False, trust_controllers=True)
    assert Path(RAN).exists()


def test_other_processes_run_what_this_one_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(AIMD, encoding="utf-8")
    plan = Comparison(["own.py:Mine"], duration="1s", repeat=1).plan()
    trusted = set(trust._trusted)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert run_plan(plan, executor=pool, show_progress=False).runs.height == 1
        trust._trusted.clear()
        work = pool.submit(runner.execute, plan.cases[0].scenario, 1)
        assert trusted, "the worker has been trusted with it above"
        assert work.result()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        work = pool.submit(runner.execute, plan.cases[0].scenario, 1)
        with pytest.raises(weir.ScenarioError, match=r"own\.py"):
            work.result()


def test_the_text_counts_and_not_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with trust.deciding(trust.trust_all):
        Source(SCENARIO, "scenario").at({})
    Path(RAN).unlink()
    Source(SCENARIO, "scenario").at({})
    Path(RAN).unlink()
    with pytest.raises(weir.ScenarioError):
        Source(SCENARIO.replace("beta", "gamma"), "scenario").at({})
    assert not Path(RAN).exists()


def test_results_tell_which_programs_they_hold(results: Path) -> None:
    manifest = json.loads((results / "manifest.json").read_text())
    recorded = manifest["controllers"]["theirs.py"]["sha256"]
    assert recorded == hashlib.sha256(FOREIGN.encode()).hexdigest()


def test_export_in_python_refuses_too(results: Path) -> None:
    from weir.export import export

    with pytest.raises(InputError, match=r"theirs\.py"):
        export(weir.load(results), "qlog", "out")
    assert not Path(RAN).exists()
    export(weir.load(results), "qlog", "out", trust_controllers=True)
    assert Path(RAN).exists()
