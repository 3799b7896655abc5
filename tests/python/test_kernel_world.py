"""Scenarios over the kernel's own TCP: real connections between namespaces of our own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
import pytest
import requires
from conftest import Invoke

import weir
from weir.api import reports
from weir.results.results import TABLES

NETWORK = """
[topology]
rate = "20mbit"
rtt = "10ms"
queue = "2bdp"
[measure]
duration = "2s"
events = 100
[[flow]]
"""


def run(
    out: Path, sets: Mapping[str, str], text: str = NETWORK, world: str = "kernel"
) -> weir.Results:
    return weir.run(text, world=world, sets=sets, out=out, show_progress=False)


@requires.namespaces
def test_a_bulk_flow_fills_the_link_and_is_sampled(tmp_path: Path) -> None:
    before = _interfaces()
    keys = {"flow.0.stack": "cubic", "flow.0.start": "200ms", "measure.warmup": "1s"}
    results = run(tmp_path, keys)
    for _ in range(2):
        # A run in which the machine could not keep up is none.
        results = run(tmp_path, keys) if results.caution else results
    assert _interfaces() == before, "namespaces and devices are gone"
    flow = results.flows.row(0, named=True)
    # 1448 of 1500 bytes are payload. What arrived before the warm-up was over may be read after it:
    # more of it if the machine is busy and reads late.
    share = flow["goodput_mbps"] / (20 * 1448 / 1500)
    low, high = (0.95, 1.005) if not results.caution else (0.85, 1.02)
    assert low < share < high, (share, results.runs["health"][0])
    assert flow["stack"] == "rack/cubic"
    assert flow["start_s"] == 0.2
    assert flow["retransmits_fast"] is None
    assert flow["queue_delay_samples"] > 1000
    samples = results.samples
    assert median(numbers(samples["t_s"].diff())) == pytest.approx(0.01)
    assert max(numbers(samples["srtt_ms"])) >= 10
    assert len(numbers(samples["rttvar_ms"])) > 10
    assert samples["acked_bytes"].is_sorted()
    assert {"start", "connected"} <= set(results.events["kind"])
    assert "tcp_no_metrics_save = 1" in results.runs["settings"][0]
    assert results.manifest["command"].endswith("--world kernel")


@requires.namespaces
def test_a_run_is_not_charged_for_those_before_it(tmp_path: Path) -> None:
    short = {"measure.duration": "1s", "measure.warmup": "0s", "measure.repeat": "6"}
    ratios = numbers(run(tmp_path, short).runs.sort("repeat")["cpu_ratio"])
    assert len(ratios) == 6
    assert ratios[-1] < 3 * ratios[0], "six times as much, were it the thread's since it began"


@requires.namespaces
def test_every_byte_of_a_file_is_acknowledged_and_delivered(tmp_path: Path) -> None:
    size = {"flow.0.workload.kind": "file", "flow.0.workload.size": "1mb"}
    results = run(tmp_path, {**size, "topology.forward.loss": "1%", "measure.duration": "20s"})
    flow = results.flows.row(0, named=True)
    assert flow["completed"]
    assert flow["delivered_bytes"] == 1_000_000
    assert flow["sent_bytes"] >= 1_000_000 + flow["retransmits"]
    assert flow["retransmits"] > 0
    assert flow["loss_ratio"] > 0
    # 1 MB takes 0.4 s at this rate and a round trip.
    assert 0.4 < flow["fct_s"] < 15
    assert max(numbers(results.samples["acked_bytes"])) <= 1_000_000
    assert sum(numbers(results.links["dropped_loss"])) > 0


@pytest.mark.parametrize("world", ["sim", "udp", pytest.param("kernel", marks=requires.namespaces)])
def test_a_sender_keeps_to_the_pace_that_it_may_have(tmp_path: Path, world: str) -> None:
    sets = {"flow.0.stack": "cubic", "flow.0.max_pacing_rate": "5mbit", "measure.warmup": "1s"}
    results = run(tmp_path, sets, world=world)
    assert 4.5 < results.flows["goodput_mbps"][0] < 5.05
    assert max(numbers(results.links["dropped_queue"])) == 0


@requires.namespaces
def test_a_send_buffer_bounds_what_waits(tmp_path: Path) -> None:
    """16 KiB hold ten segments or so at a time: a tenth of what 40 ms at 20 Mbit/s ask for."""
    sets = {"flow.0.stack": "cubic", "topology.rtt": "40ms", "measure.warmup": "1s"}
    goodput = [
        run(tmp_path / name, sets | more, world="kernel").flows["goodput_mbps"][0]
        for name, more in (("own", {}), ("small", {"flow.0.send_buffer": "16kib"}))
    ]
    assert goodput[1] < goodput[0] / 4, goodput


@requires.namespaces
@pytest.mark.parametrize(
    "workload",
    [
        {"kind": "request", "request": "200b", "response": "10kb", "gap": "20ms"},
        {"kind": "poisson-request", "request": "200b", "response": "5kb", "mean_gap": "20ms"},
    ],
)
def test_requests_are_answered(tmp_path: Path, workload: dict[str, str]) -> None:
    sets = {f"flow.0.workload.{key}": value for key, value in workload.items()}
    results = run(tmp_path, sets)
    flow = results.flows.row(0, named=True)
    latencies = numbers(results.requests["latency_ms"])
    assert flow["requests"] == len(latencies) > 30
    assert min(latencies) > 10, "a round trip at least"
    assert median(latencies) < 40
    answered = int(workload["request"].removesuffix("b")) * flow["requests"]
    assert answered <= flow["delivered_bytes"] <= answered + 400


@requires.namespaces
@pytest.mark.parametrize(
    ("workload", "mbps"),
    [
        ({"kind": "rate", "rate": "2mbit", "size": "1000b"}, 2.0),
        ({"kind": "on-off", "rate": "4mbit", "on": "250ms", "off": "250ms"}, 2.0),
        ({"kind": "on-off", "on": "250ms", "off": "250ms"}, 9.6),
    ],
)
def test_sources_send_when_they_are_to(
    tmp_path: Path, workload: dict[str, str], mbps: float
) -> None:
    sets = {f"flow.0.workload.{key}": value for key, value in workload.items()}
    (goodput,) = run(tmp_path, sets).flows["goodput_mbps"]
    assert goodput == pytest.approx(mbps, rel=0.2)


MIXED = """
[topology]
rate = "10mbit"
rtt = "20ms"
[measure]
duration = "3s"
[[flow]]
name = "tcp"
stack = "reno"
start_jitter = "50ms"
stop = "2500ms"
[[flow]]
name = "ours"
stack = "go-back-n(8)/none"
ends = "weir"
start = "500ms"
[[flow]]
name = "datagrams"
stack = "udp"
workload = { kind = "rate", rate = "2mbit" }
start_jitter = "50ms"
"""


@requires.namespaces
def test_our_own_flows_share_the_links_with_the_kernels(tmp_path: Path) -> None:
    simulated = run(tmp_path, {}, MIXED, "sim")
    results = run(tmp_path, {}, MIXED)
    for name in TABLES:
        assert getattr(results, name).schema == getattr(simulated, name).schema, name
    ours, theirs = (
        frame.flows.select("name", "stack", "completed") for frame in (simulated, results)
    )
    assert ours.equals(theirs)
    # Their random numbers are the same, and no timer is late by much.
    assert numbers(results.flows["start_s"]) == numbers(simulated.flows["start_s"])
    assert min(numbers(results.flows["goodput_mbps"])) > 0.5
    assert results.runs["goodput_mbps"][0] < 10
    assert results.flows["end_s"][0] == pytest.approx(2.5, abs=0.05)
    assert results.flows["retransmits_fast"].null_count() == 1


@requires.namespaces
@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (("flow.0.stack=rack/vegas(alpha=3)",), "vegas"),
        (("flow.0.stack=sack/reno",), "recovers from losses as rack does"),
        (("flow.0.initial_window=4",), "initial_window = 4"),
        (("flow.0.initial_recv_window=64kib",), "initial_recv_window = "),
        (("flow.0.max_recv_buffer=128mib",), "max_recv_buffer = "),
        (("flow.0.stack=none(30)",), "congestion control 'none'; it has "),
        (("flow.0.send_time=1ms",), "send_time"),
    ],
)
def test_what_a_kernel_does_its_own_way_is_bad_input(
    invoke: Invoke, sets: tuple[str, ...], said: str
) -> None:
    words = [word for key in sets for word in ("--set", key)]
    result = invoke("run", "random-loss", "--world", "kernel", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="root gives up being root")
def test_without_root_the_world_says_what_is_missing(tmp_path: Path) -> None:
    # The other user may not be able to read the interpreter's modules.
    script = f"""
import os, weir
weir.run({NETWORK!r}, repeat=1, show_progress=False, out={str(tmp_path)!r})
os.setuid(65534)
try:
    weir.run({NETWORK!r}, world="kernel", show_progress=False)
except weir.ScenarioError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert "world kernel needs root" in done.stdout, done.stderr
    assert "the worlds sim and udp work" in done.stdout


@requires.namespaces
def test_more_than_this_machine_can_carry_has_a_bad_verdict(tmp_path: Path, invoke: Invoke) -> None:
    fast = ("--rate", "400gbit", "--rtt", "1ms", "--duration", "1500ms", "--out", tmp_path)
    result = invoke("compare", "cubic", *fast, "-n", 1, "--world", "kernel", "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    (row,) = json.loads(result.stdout)["rows"]
    assert "carried" in row["health"]
    assert row["health"].startswith("bad in 1 of 1 runs: ")
    results = weir.load(tmp_path / "compare" / "latest")
    assert results.caution == "bad verdict: strained in 1 of 1 runs"
    assert results.where == "in world kernel"
    page = reports.write(results).read_text()
    assert page.count(f"[{results.caution}]") >= 3, "tables and figures"
    assert "compare in world kernel" in page


def numbers(column: pl.Series) -> list[Any]:
    """What of a column is not null."""
    return column.drop_nulls().to_list()


def _interfaces() -> set[str]:
    """Devices, without those of links that other tests have meanwhile."""
    names = {device.name for device in Path("/sys/class/net").iterdir()}
    return {n for n in names if not n.startswith("weir-") or n == f"weir-{os.getpid()}"}
