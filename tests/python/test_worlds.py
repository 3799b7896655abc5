"""Scenarios in real time: real transfers over loopback, from the command line and Python."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Invoke, started, until

import weir
from weir.results.results import TABLES
from weir.running.execution import run_plan
from weir.studies.lab_udp import calibrated
from weir.studies.lab_udp.cells import study_cells
from weir.studies.lab_udp.experiment import study_plan
from weir.studies.lab_udp.published import SOURCES, Source, load

QUICK = {
    "topology.delay": "1ms",
    "flow.0.workload.size": "60kb",
    "flow.0.fixed_rto": "50ms",
    "measure.sample_interval": "2ms",
    "measure.events": "10",
}
ONE_POINT = {"topology.forward.loss": ["0%"], "flow.0.stack": ["go-back-n(4)/none"]}


def test_both_worlds_write_the_same_columns(tmp_path: Path) -> None:
    simulated, real = (
        weir.run(
            "lab-router",
            world=world,
            repeat=2,
            sets=QUICK,
            sweep=ONE_POINT,
            out=tmp_path,
            show_progress=False,
        )
        for world in ("sim", "udp")
    )
    for name in TABLES:
        assert getattr(simulated, name).schema == getattr(real, name).schema, name
    for results in (simulated, real):
        assert list(results.flows["delivered_bytes"]) == [60_000, 60_000]
        assert not results.samples.is_empty()
    assert [results.cases[0]["world"] for results in (simulated, real)] == ["sim", "udp"]
    assert simulated.runs["health"].null_count() == simulated.runs.height
    assert real.runs["health"].null_count() == 0
    assert list(real.runs["unasked_drops"]) == [0, 0]
    assert simulated.manifest["health"].keys() == {"verdict", "wall_s"}
    assert real.manifest["health"]["worst"]["cpu_ratio"] > 0
    assert real.manifest["command"] == f"{simulated.manifest['command']} --world udp"


def test_stacks_are_compared_in_real_time(invoke: Invoke) -> None:
    network = ("--rate", "20mbit", "--rtt", "4ms", "--size", "100kb", "-n", 1, "--world", "udp")
    result = invoke("compare", "reno", "bbr", *network, "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    times = [row["fct_s"]["mean"] for row in json.loads(result.stdout)["rows"] if "fct_s" in row]
    # 100 kB take 40 ms at this rate.
    assert len(times) == 2
    assert min(times) > 0.04


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "lab-router", "--world", "moon"), "there are: sim, udp, kernel"),
        (("run", "lab-router", "--world", "udp", "--set", "flow.0.mss=65450"), "at most 65431"),
        (("study", "book", "--world", "udp"), "study book runs with --world sim or --world kernel"),
    ],
)
def test_what_a_world_cannot_do_is_bad_input(
    invoke: Invoke, words: tuple[str, ...], said: str
) -> None:
    result = invoke(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("weir: ")
    assert said in result.stderr


def test_ctrl_c_ends_a_run_long_before_its_time(tmp_path: Path) -> None:
    slow = ("--set", "topology.delay=1s", "--set", "measure.duration=600s", "--world", "udp")
    with started("run", "lab-router", *slow, "--out", tmp_path, "--quiet") as process:
        until(lambda: any(tmp_path.glob("lab-router/.*")))
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "interrupted" in stderr


def test_ctrl_c_before_the_first_run_leaves_nothing(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(_path: Path) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("weir.results.store._lock", pressed)
    done = invoke("run", "lab-router", "--out", tmp_path / "results", "--quiet")
    assert (done.exit_code, done.stdout, done.stderr) == (130, "", "weir: interrupted\n")
    assert list((tmp_path / "results").iterdir()) == []


def test_the_cells_of_a_study_stand_beside_real_transfers(tmp_path: Path) -> None:
    sources = [load(name) for name in SOURCES]
    plan = study_plan([_one_cell(sources[0])], calibrated(sources), {"sim": 2, "udp": 1}, 1, [])
    results = run_plan(plan, out=tmp_path, jobs=2, show_progress=False)
    (cell,) = study_cells([_one_cell(sources[0])], results, "udp")
    assert list(cell.ours) == ["serial", "serial_udp", "delay_line", "delay_line_udp"]
    assert [measured.time.n for measured in cell.ours.values()] == [2, 1, 2, 1]
    for relay in ("serial", "delay_line"):
        ratio = cell.against_simulated(relay, "udp")
        assert ratio is not None
        assert ratio > 0.9, "real time is not faster than the time of the model"


def _one_cell(source: Source) -> Source:
    """Only what one protocol took without loss and delay."""
    table = source.table("loss")
    row = replace(table.row("W=5"), times=table.row("W=5").times[:1])
    return replace(source, tables=(replace(table, columns=table.columns[:1], rows=(row,)),))
