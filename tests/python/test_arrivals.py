"""Flows of many connections, from the command line to the table of completion times."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import weir
from weir.cli.app import app
from weir.dynamics.arrivals import CLASSES

WEB = """
[topology]
rate = "1gbit"
rtt = "1ms"
[[flow]]
name = "web"
stack = "cubic"
[flow.workload]
kind = "flow-sizes"
sizes = [[1000, 0.3], [90000, 0.9], [11000000, 1]]
load = 0.5
arrivals = 600
[measure]
duration = "60s"
repeat = 2
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> weir.Results:
    """Two repeats of 600 connections, over two stacks."""
    folder = tmp_path_factory.mktemp("arrivals")
    (folder / "web.toml").write_text(WEB, encoding="utf-8")
    ended = CliRunner().invoke(
        app,
        [
            "run",
            str(folder / "web.toml"),
            "--sweep=flow.0.stack=cubic,reno",
            "--json",
            "--quiet",
            "--out",
            str(folder / "results"),
        ],
    )
    assert ended.exit_code == 0, ended.stderr
    (folder / "printed.json").write_text(ended.stdout, encoding="utf-8")
    return weir.load(next((folder / "results").glob("**/manifest.json")).parent)


def test_every_stack_meets_the_same_connections(results: weir.Results) -> None:
    offered = results.arrivals.join(results.runs.select("run", "stack", "seed"), on="run")
    keys = ["seed", "arrival", "start_s", "size_bytes"]
    cubic, reno = (
        offered.filter(pl.col("stack").str.contains(stack)).select(keys).sort(keys)
        for stack in ("cubic", "reno")
    )
    assert cubic.height == 2 * 600
    assert cubic.equals(reno)


def test_classes_cover_all_connections_and_their_figures_are_those_of_the_rows(
    results: weir.Results,
) -> None:
    label = results.cases[0]["label"]
    everything, *classes = results.completions(label)
    assert [done.sizes for done in (everything, *classes)] == list(CLASSES)
    assert everything.n == 1200 == sum(done.n for done in classes)
    assert (everything.unfinished, everything.failed) == (0, 0)
    runs = results.runs.filter(pl.col("label") == label)["run"]
    rows = results.arrivals.filter(pl.col("run").is_in(runs.to_list()))
    times = (rows["fct_s"] * 1e3).sort()
    assert everything.fct_ms.mean.n == 2
    assert everything.fct_ms.mean.mean == pytest.approx(times.mean())
    median, tail = everything.fct_ms.percentiles
    assert (median.value, tail.value) == (times[599], times[1187])
    slowdown = everything.slowdown.percentiles[0].value
    assert slowdown is not None
    assert slowdown >= 1
    # Uniform over 90 KB to 11 MB, a tenth of all: of these a hundredth is larger than 10 MB.
    largest = classes[-1]
    assert 0 < largest.n < 60
    assert largest.fct_ms.percentiles[1].value is None


def test_json_and_table_show_them(results: weir.Results) -> None:
    printed = json.loads((results.path.parents[2] / "printed.json").read_text(encoding="utf-8"))
    rows = printed["rows"][0]["arrivals"]
    assert [row["sizes"] for row in rows] == [sizes.name for sizes in CLASSES]
    assert rows[0]["n"] == 1200
    assert rows[0]["fct_ms_p99"] > rows[0]["fct_ms_p50"] > 1
    assert rows[0]["slowdown_mean"]["n"] == 2
    html = results._repr_html_()
    assert "Completion times by size" in html
    assert "≤ 100 KB" in html
    assert "not done at the end" not in html


def test_connections_that_were_cut_off_are_reported(tmp_path: Path) -> None:
    (tmp_path / "web.toml").write_text(WEB, encoding="utf-8")
    cut = ["--set=measure.duration=300ms", "--set=measure.repeat=1", "--out", str(tmp_path / "out")]
    ended = CliRunner().invoke(app, ["run", str(tmp_path / "web.toml"), "--quiet", *cut])
    assert ended.exit_code == 0, ended.stderr
    words = " ".join(ended.stdout.split())
    assert "were not done at the end of their run" in words
    results = weir.load(next((tmp_path / "out").glob("**/manifest.json")).parent)
    (done, *_) = results.completions(results.cases[0]["label"])
    assert 0 < done.unfinished == results.arrivals["fct_s"].null_count()


def test_scenarios_without_such_flows_have_no_such_table(tmp_path: Path) -> None:
    text = '[[flow]]\nworkload = { kind = "file", size = "10kb" }\n'
    (tmp_path / "one.toml").write_text(text, encoding="utf-8")
    out = str(tmp_path / "out")
    ended = CliRunner().invoke(app, ["run", str(tmp_path / "one.toml"), "--json", "--out", out])
    assert ended.exit_code == 0, ended.stderr
    assert "arrivals" not in json.loads(ended.stdout)["rows"][0]
