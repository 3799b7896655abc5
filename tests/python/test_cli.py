"""The command line: what it prints, and how it fails."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path
from typing import Any

import pytest
from conftest import SHORT, Invoke, started

from weir.base.errors import RunError
from weir.cli.exit_codes import exit_code
from weir.scenario.source import Effective

VERBS = ("compare", "run", "ui", "study", "list", "diff", "report", "export", "doctor")

SCENARIO = """
name = "two-flows"
[topology]
rate = "10mbit"
rtt = "20ms"
[[flow]]
stack = "reno"
start_jitter = "50ms"
[[flow]]
stack = "cubic"
[measure]
duration = "1s"
repeat = 2
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(SCENARIO)
    return path


def test_compare_prints_tables_and_writes_results(invoke: Invoke) -> None:
    result = invoke("compare", "reno", "cubic", *SHORT)
    assert result.exit_code == 0, result.stderr
    assert "goodput, Mbit/s" in result.stdout
    assert "Paired differences to reno" in result.stdout
    assert Path("results/compare/latest/flows.parquet").is_file()
    assert [path.name for path in Path("results/compare").glob(".*")] == []


def test_json_is_one_object_with_intervals(invoke: Invoke) -> None:
    result = invoke("compare", "reno", "cubic", "--flows", 2, "--json", *SHORT)
    document = json.loads(result.stdout)
    assert (document["schema"], document["command"]) == (1, "compare")
    reno, cubic = document["rows"]
    assert (reno["stack"], cubic["stack"]) == ("reno", "cubic")
    assert cubic["effective_stack"] == "rack/cubic"
    for metric in ("goodput_mbps", "utilisation", "retransmit_ratio", "rtt_ms_mean", "jain_index"):
        value = cubic[metric]
        assert value["n"] == 3
        assert value["lo"] <= value["mean"] <= value["hi"]
    assert cubic["difference"]["reference"] == "reno"
    assert cubic["difference"]["goodput_mbps"]["verdict"]
    assert "difference" not in reno


def test_json_is_the_same_every_time_and_with_any_number_of_jobs(invoke: Invoke) -> None:
    command = ("compare", "reno", "cubic", "--loss", "1%", "--json", *SHORT)
    one, other, single = (invoke(*command, *more) for more in ((), (), ("--jobs", 1)))
    assert one.stdout == other.stdout == single.stdout != ""
    assert len(list(Path("results/compare").glob("2*"))) == 3, "nothing is overwritten"


def test_run_prints_cases_and_flows(invoke: Invoke, scenario: Path) -> None:
    result = invoke("run", scenario, "--sweep", "topology.queue=10p,20p", "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)["rows"]
    assert [row["topology.queue"] for row in rows] == ["10p", "20p"]
    assert [flow["stack"] for flow in rows[0]["flows"]] == ["rack/reno", "rack/cubic"]
    assert rows[0]["flows"][0]["goodput_mbps"]["n"] == 2
    table = invoke("run", scenario, "--set", "measure.repeat=1", "--quiet")
    assert table.exit_code == 0, table.stderr
    assert "rack/cubic" in table.stdout


def test_flows_that_did_not_complete_are_pointed_out(invoke: Invoke) -> None:
    slow = invoke("compare", "reno", "--size", "1gb", *SHORT)
    assert "3 of 3 flows did not complete in time." in slow.stdout
    dead = ("--loss", "100%", "--set", "flow.0.max_retransmits=1")
    broken = invoke("compare", "reno", *dead, "--duration", "9s", "--repeat", "2", "--quiet")
    printed = " ".join(broken.stdout.split())
    assert "2 of 2 flows did not complete; the first that failed, flow0: no answer" in printed
    assert "did not complete" not in invoke("compare", "reno", *SHORT).stdout


def test_a_dry_run_lists_every_run_and_starts_none(invoke: Invoke, scenario: Path) -> None:
    result = invoke("run", scenario, "--sweep", "topology.queue=1bdp,2bdp", "--dry-run", "--json")
    rows = json.loads(result.stdout)["rows"]
    assert [(row["topology.queue"], row["seed"]) for row in rows] == [
        ("1bdp", 1),
        ("2bdp", 1),
        ("1bdp", 2),
        ("2bdp", 2),
    ]
    assert not Path("results").exists()
    assert "4 runs" in invoke("run", scenario, "-n", 4, "--dry-run").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare",), "STACK"),
        (("compare", "reno", "--bogus"), "--bogus"),
        (("compare", "reno", "reno"), "given twice"),
        (("compare", "renoo"), "renoo"),
        (("compare", "reno", "--rate", "10mbps"), "10mbps"),
        (("compare", "reno", "--rate", "fast"), "fast"),
        (("compare", "reno", "--rtt", "40"), "40"),
        (("compare", "reno", "--loss", "-1%"), "-1%"),
        (("compare", "reno", "--loss", "101%"), "101%"),
        (("compare", "reno", "--duration", "5parsec"), "5parsec"),
        (("compare", "reno", "--repeat", "0"), "--repeat 0: 0 is not allowed; at least 1"),
        (("compare", "reno", "--seed", "-1"), "--seed -1: -1 is not allowed; at least 0"),
        (("compare", "reno", "--flows", "x"), "--flows x: x is not allowed; a whole number"),
        (("ui", "two-flows", "--port", "65536"), "--port 65536: 65536 is not allowed; at most"),
        (("compare", "reno", "--sweep", "topology.rtt=9ms,9ms"), "rtt=9ms,9ms: 9ms is there twice"),
        (("compare", "reno", "--set", "topology.rat=1mbit"), "topology.rat"),
        (("compare", "reno", "--set", "nonsense"), "key=value"),
        (("compare", "reno", "--sweep", "topology.queue=1bdp,many"), "many"),
        (("compare", "reno", "--resume"), "nothing to resume"),
        (("run", "missing.toml"), "missing.toml: no such file"),
        (("study", "nothing"), "nothing"),
        (("list", "nothing"), "nothing"),
        (("report", "."), "no results here"),
        (("fly",), "fly"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    invoke: Invoke, arguments: tuple[str, ...], message: str
) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("weir: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not Path("results").exists()


def test_a_file_with_an_unknown_key_is_refused_with_its_line(
    invoke: Invoke, scenario: Path
) -> None:
    scenario.write_text(SCENARIO.replace('rtt = "20ms"', 'rtl = "20ms"'))
    result = invoke("run", scenario)
    assert result.exit_code == 2
    assert "line 5" in result.stderr
    assert "rtl" in result.stderr


def test_failed_runs_are_recorded_and_the_others_stay(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weir.running import runner

    sound = runner.execute

    def fails_once(scenario: Effective, seed: int, *where: Any) -> object:
        if seed == 2:
            raise RuntimeError("the checker objects")
        return sound(scenario, seed, *where)

    monkeypatch.setattr(runner, "execute", fails_once)
    broken = invoke("compare", "reno", "--json", *SHORT)
    assert broken.exit_code == 1
    assert json.loads(broken.stdout)["rows"][0]["goodput_mbps"]["n"] == 2
    assert "1 of 3 runs failed, the first (reno, seed 2): the checker objects" in broken.stderr

    monkeypatch.setattr(runner, "execute", sound)
    mended = invoke("compare", "reno", "--json", "--resume", *SHORT)
    assert mended.exit_code == 0
    assert json.loads(mended.stdout)["rows"][0]["goodput_mbps"]["n"] == 3


def test_a_plan_of_which_everything_fails_prints_nothing(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_scenario: str, _seed: int, *_where: Any) -> object:
        raise RuntimeError("no")

    monkeypatch.setattr("weir.running.runner.execute", fails)
    result = invoke("compare", "reno", "--json", *SHORT)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "3 of 3 runs failed" in result.stderr


def test_a_full_disk_is_one_message_and_leaves_nothing(tmp_path: Path) -> None:
    def no_file_above_100_bytes() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    command = ("compare", "reno", *SHORT, "--out", tmp_path / "r")
    with started(*command, preexec_fn=no_file_above_100_bytes) as process:
        stdout, stderr = process.communicate()
    assert process.returncode == 1
    assert stdout == ""
    assert stderr.count("\n") == 1, stderr
    assert "cannot write results" in stderr
    assert "too large" in stderr
    assert list((tmp_path / "r").rglob("*")) == []


def test_an_output_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with started("compare", "reno", *SHORT, "--out", tmp_path / "file") as process:
        _, stderr = process.communicate()
    assert process.returncode == 1
    assert stderr.startswith("weir: cannot write results in ")


def test_a_full_stdout_is_an_error() -> None:
    with Path("/dev/full").open("w") as full, started("list", stdout=full) as process:
        _, stderr = process.communicate()
    assert process.returncode == 1
    assert stderr == "weir: No space left on device\n"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(invoke: Invoke, verb: str) -> None:
    result = invoke(verb, "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout
    if verb not in ("doctor",):
        assert f"weir {verb}" in result.stdout


def test_help_and_version(invoke: Invoke) -> None:
    bare = invoke()
    assert (bare.exit_code, bare.stderr) == (0, "")
    assert "Usage:" in bare.stdout
    assert all(verb in invoke("--help").stdout for verb in VERBS)
    assert invoke("--version").stdout.startswith("weir 0")


def test_list_names_what_exists(invoke: Invoke) -> None:
    document = json.loads(invoke("list", "--json").stdout)
    names = {(row["kind"], row["name"]) for row in document["rows"]}
    assert {("controllers", "cubic"), ("recoveries", "rack"), ("metrics", "goodput_mbps")} <= names
    assert all(row["description"] for row in document["rows"])
    assert "cubic" in invoke("list", "controllers").stdout


def test_doctor_finds_what_is_needed(invoke: Invoke) -> None:
    rows = json.loads(invoke("doctor", "--json").stdout)["rows"]
    found = {row["name"]: row for row in rows}
    assert found["simulator"]["state"] == "ok"
    assert found["compiled core"]["found"]


def test_the_report_is_named_and_can_be_drawn_again(invoke: Invoke, tmp_path: Path) -> None:
    with started("compare", "reno", "--duration", "1s", "-n", 2, cwd=tmp_path) as process:
        _, stderr = process.communicate()
    path = Path(stderr.removeprefix("Report: ").strip())
    assert path.is_file(), stderr
    drawn = path.stat().st_mtime_ns
    result = invoke("report", "results/compare/latest", "--svg")
    assert result.exit_code == 0, result.stderr
    assert Path(result.stdout.strip()) == path
    assert path.stat().st_mtime_ns > drawn
    assert list((path.parent / "figures").glob("*.svg"))


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("weir compare cu", "cubic"),
        ("weir compare reno sack/v", "sack/vegas"),
        ("weir run two", "two-flows"),
        ("weir comp", "compare"),
    ],
)
def test_the_shell_completes(words: str, offered: str) -> None:
    position = len(words.split()) - 1
    request = {"_WEIR_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(position)}
    with started(env={**os.environ, **request}) as process:
        stdout, stderr = process.communicate()
    assert offered in stdout.split(), stderr


def test_a_report_can_be_left_out_or_opened(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def refuse(url: str) -> bool:
        opened.append(url)
        return False

    monkeypatch.setattr("webbrowser.open", refuse)
    options = ("compare", "reno", "--duration", "1s", "--repeat", "1")
    result = invoke(*options, "--no-report")
    assert result.exit_code == 0
    assert "Results: " in result.stderr
    assert "Report: " not in result.stderr
    result = invoke(*options, "--open")
    assert result.exit_code == 0
    assert "No browser was found" in result.stderr
    result = invoke("report", "results/compare/latest", "--open")
    assert "No browser was found" in result.stderr
    url, again = opened
    assert again.endswith("/report.html")
    assert url.startswith("file:///")
    assert url.endswith("/report.html")
    result = invoke(*options, "--no-report", "--open")
    assert result.exit_code == 2
    assert "--open: --no-report draws no report to open" in result.stderr


def test_an_error_of_several_lines_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        raise RunError("the guest said:\n  Killed\n")

    assert exit_code("weir", fails) == RunError.exit_code
    assert capsys.readouterr().err == "weir: the guest said: Killed\n"
