"""What the pages say of fabrics, next to the runs that they show."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import weir


def _of_page(page: str, name: str, folder: Path) -> Path:
    """A scenario that a page of the documentation shows."""
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    (found,) = re.findall(rf'^```toml title="{name}"\n(.*?)^```$', text, re.M | re.S)
    (folder / name).write_text(found, encoding="utf-8")
    return folder / name


_RING = """
[topology]
kind = "leaf-spine"
leaves = 2
hosts = 4
spines = 2
rate = "25gbit"
delay = "2us"
queue = "1000p"
routing = "ecmp"
[[flow]]
stack = "dctcp"
min_rto = "1ms"
workload = { kind = "all-reduce", algorithm = "ring", size = "4mb", iterations = 2 }
[measure]
duration = "1s"
sample_interval = "0s"
events = 100000
"""
_FQ = '{ kind = "fq", limit = "100000p", flow_limit = 100000 }'


@pytest.mark.parametrize(
    ("keys", "ms"),
    [
        ({}, 4.4),
        ({"flow.0.initial_window": 100}, 3.8),
        ({"topology.host_queue": _FQ}, 3.5),
        ({"topology.host_queue": _FQ, "flow.0.initial_window": 100}, 3.0),
    ],
)
def test_an_iteration_takes_what_the_page_says(
    keys: dict[str, object], ms: float, tmp_path: Path
) -> None:
    scenario = _of_page("models/fabric.md", "training.toml", tmp_path)
    results = weir.run(scenario, sets=keys, repeat=2, out=tmp_path, show_progress=False)
    mean = float(np.mean(results.flows["fct_s"].to_numpy()))
    assert round(1e3 * mean / 3, 1) == ms


def test_handshakes_wait_in_the_queue_of_their_own_host(tmp_path: Path) -> None:
    """A ring over another fabric: the same cause, with other sizes."""
    scenario = tmp_path / "ring.toml"
    scenario.write_text(_RING, encoding="utf-8")
    took = []
    queues: list[dict[str, object]] = [{}, {"topology.host_queue": _FQ}]
    for keys in queues:
        results = weir.run(scenario, sets=keys, out=tmp_path, show_progress=False)
        kinds = results.events.pivot("kind", index="flow", values="t_s", aggregate_function="first")
        took.append(float(np.mean((kinds["connected"] - kinds["start"]).to_numpy())))
    fifo, fq = took
    assert fifo > 1.5 * fq


@pytest.mark.parametrize(
    ("rate", "delay", "slowdown"),
    [
        ("100gbit", "1us", 1.54),
        ("1gbit", "1us", 3.28),
        ("100gbit", "0s", 4.45),
        ("1gbit", "0s", 4.51),
    ],
)
def test_the_slowdown_of_one_packet_is_that_of_the_page(
    rate: str, delay: str, slowdown: float, tmp_path: Path
) -> None:
    keys: dict[str, object] = {"topology.rate": rate, "topology.delay": delay}
    scenario = _of_page("metrics.md", "one.toml", tmp_path)
    results = weir.run(scenario, sets=keys, out=tmp_path, show_progress=False)
    row = results.arrivals.row(0, named=True)
    assert round(row["slowdown"], 2) == slowdown
    assert row["slowdown_hpcc"] == 1.0
    text = (Path(__file__).parents[2] / "docs/metrics.md").read_text(encoding="utf-8")
    assert f"| {slowdown} | 1.0 |" in text
