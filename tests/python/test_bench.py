"""`make bench` on tiny cases: that it measures what it says, never how fast it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import measure, ns3, show
from bench.cases import Arrivals, Chain, Dumbbell, cases
from weir.running.runner import execute
from weir.scenario.source import Source

ROOT = Path(__file__).parents[2]


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", "--repeat", "1", *options]
    # As Python knows it: readline, which pytest loads, sets COLUMNS behind its back.
    env = dict(os.environ)
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_json_has_a_row_per_case_with_every_figure() -> None:
    ended = bench("--json", "--no-ns3", "--scale", "0.005", "--only", "dumbbell")
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert (document["schema"], document["command"]) == (1, "bench")
    rows = document["rows"]
    assert [row["flows"] for row in rows] == [1, 16, 2]
    for row in rows:
        assert row["data_packets"] > 0
        assert row["events"] > row["data_packets"]
        assert row["packets_per_cpu_s"] == pytest.approx(row["data_packets"] / row["cpu_s"])
        assert row["sim_s_per_cpu_s"] == pytest.approx(row["sim_s"] / row["cpu_s"])
        assert row["peak_mib"] > row["run_mib"] >= 0


def test_the_table_has_its_columns_and_says_how_it_was_measured() -> None:
    ended = bench("--no-ns3", "--scale", "0.005", "--only", "1 flow,")
    assert ended.returncode == 0, ended.stderr
    words = ended.stdout.split()
    for header in ("events/s", "packets/s", "peak"):
        assert header in words
    assert "samples every 100 ms" in " ".join(words)
    assert "No comparison with ns-3" in ended.stderr


def test_a_case_that_does_not_exist_is_refused() -> None:
    ended = bench("--only", "token ring")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "token ring" in ended.stderr


def test_the_case_is_a_scenario_of_three_hops() -> None:
    case = cases()[0].scaled(0.005)
    assert isinstance(case, Dumbbell)
    row = measure.weir(case, 1)
    packets = case.rate_mbps * 1e6 * case.sim_s / (8 * 1500)
    assert 0.2 * packets < row["data_packets"] <= packets
    assert 'access_rate = "1000mbit"' in case.scenario


def test_the_radio_case_is_a_chain_that_carries_data() -> None:
    (case,) = [case for case in cases() if isinstance(case, Chain)]
    assert (case.hops, case.window, case.mss, case.spacing_m) == (8, 8, 1460, 200)
    assert case.sim_s == case.ns3_sim_s == 51
    row = measure.weir(case.scaled(0.1), 1)
    # Of a long chain at best every fourth node can send at a time (Li et al., MobiCom 2001).
    assert 0 < row["goodput_mbps"] < case.rate_mbps / 4
    # Each hop takes RTS, CTS, data and acknowledgement, each of which begins and ends somewhere.
    assert row["events"] > 8 * case.hops * row["data_packets"] > 0


def test_the_case_of_many_connections_carries_all_of_them() -> None:
    (case,) = [case for case in cases() if isinstance(case, Arrivals)]
    assert (case.flows, case.load) == (100_000, 0.6)
    scaled = case.scaled(0.002)
    tables = execute(Source(scaled.scenario, "bench").effective(), 1)
    assert tables["arrivals"].height == scaled.flows == 200
    assert tables["arrivals"]["completed"].all()


def test_notes_compare_with_the_right_row() -> None:
    def row(name: str, simulator: str, packets: int, **more: object) -> measure.Row:
        case = Dumbbell(name, "dumbbell", 1, 10, 40, 1.0)
        run = {"sim_s": 1.0, "events": 9, "data_packets": packets, "goodput_mbps": 9.0}
        return {**measure.row(case, simulator, [{**run, "cpu_s": 2.0, "peak_mib": 5.0}]), **more}

    rows = [row("a", "weir", 800), row("a", "ns-3 3.37", 20), row("b", "weir", 100)]
    (grid,) = show.grids(rows)
    assert [cells[-1] for cells in grid.rows] == ["40 × ns-3", "", ""]

    ours = row("c", "weir", 60, group="radio", ns3_cpu_ratio=17.26)
    (grid,) = show.grids([ours, row("c", "ns-3 3.37", 5, group="radio")])
    assert grid.rows[0][-1] == "12 × ns-3; time × 17.3 (goal 15)"

    counts = [row(name, "weir", n, group="flow count") for name, n in (("a", 400), ("b", 200))]
    assert [cells[-1] for cells in show.grids(counts)[0].rows] == ["", "cost × 2.00"]

    spans = [
        row("a", "weir", 1, group="duration", run_mib=1.0),
        row("b", "weir", 4, group="duration", run_mib=1.5, sim_s=4.0),
    ]
    assert show.grids(spans)[0].rows[1][-1] == "+0.5 MiB for 4 × the time"


def test_what_ns3_lacks_is_said_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "top of Weir's sources" in str(ns3.missing())
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "c++" in str(ns3.missing())


def test_ns3_does_the_same_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    if (obstacle := ns3.missing()) is not None:
        pytest.skip(obstacle)
    case = Dumbbell("tiny", "dumbbell", 2, 10, 20, 2.0, ns3_sim_s=2.0)
    ours, theirs = ns3.compare(ns3.build(tmp_path, "dumbbell"), case, 1)
    assert theirs["goodput_mbps"] == pytest.approx(ours["goodput_mbps"], rel=0.1)
    assert theirs["data_packets"] == pytest.approx(ours["data_packets"], rel=0.1)


def test_ns3_does_the_same_work_on_a_radio_hop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over one hop nothing overlaps unread, so both have what the frames of 802.11 take."""
    monkeypatch.chdir(ROOT)
    if (obstacle := ns3.missing()) is not None:
        pytest.skip(obstacle)
    case = Chain("tiny", 1, 8, 5.0)
    ours, theirs = ns3.compare(ns3.build(tmp_path, "chain"), case, 2)
    assert (ours["repeats"], theirs["repeats"]) == (2, 2)
    assert ours["ns3_cpu_ratio"] > 0
    assert theirs["goodput_mbps"] == pytest.approx(ours["goodput_mbps"], rel=0.1)


def test_controllers_in_python_are_measured_beside_the_native_one() -> None:
    command = [sys.executable, "-m", "bench.controllers", "--repeat", "1", "--duration", "1s"]
    ended = subprocess.run(
        [*command, "--json"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    native, python = json.loads(ended.stdout)["rows"]
    assert native["acks"] == python["acks"] > 1_000
    assert native["cpu_ratio_to_native"] == 1
    assert python["acks_per_cpu_s"] == pytest.approx(python["acks"] / python["cpu_s"])
