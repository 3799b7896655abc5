"""Flows of many connections, from the command line to the table of completion times."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from conftest import Invoke
from typer.testing import CliRunner

import weir
from weir.base.grid import number
from weir.cli.app import app
from weir.dynamics.arrivals import CLASSES, Fates, left_out
from weir.plots import figures
from weir.report import summary

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

FABRIC = """
[topology]
kind = "leaf-spine"
leaves = 2
hosts = 2
spines = 2
rate = "1gbit"
delay = "2us"
queue = { kind = "ecn-step", threshold = "30p", limit = "500p" }
[[flow]]
name = "small"
stack = "dctcp"
min_rto = "1ms"
workload = { kind = "flow-sizes", sizes = [[500, 0.2], [3000, 1]], load = "70%" }
[[flow]]
name = "large"
stack = "dctcp"
min_rto = "1ms"
workload = { kind = "permutation", size = "20mb" }
[measure]
duration = "2ms"
sample_interval = "0s"
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


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> weir.Results:
    """Two repeats of 2 ms in a fabric: of one flow some connections end, of the other none."""
    folder = tmp_path_factory.mktemp("cut")
    (folder / "cut.toml").write_text(FABRIC, encoding="utf-8")
    return weir.run(folder / "cut.toml", repeat=2, out=folder, show_progress=False)


def test_the_page_has_the_note_of_the_terminal_in_its_box_and_at_the_figure(
    cut: weir.Results,
) -> None:
    rows = cut.arrivals.join(cut.flows.select("run", "flow", "name"), on=["run", "flow"])
    small = rows.filter(pl.col("name") == "small")["fct_s"]
    assert 0 < small.null_count() < len(small)
    said = (
        f"{small.null_count()} of {len(small)} connections of small "
        f"({number(100 * small.null_count() / len(small))} %) and 8 of 8 connections of large "
        "(100 %) were not done at the end of their run: they are left out of completion times and "
        "slowdowns, and the times of the others are too good."
    )
    assert left_out(cut.fates()) == [said]
    assert said in summary.cautions(cut)
    assert said in cut._repr_html_()
    (figure,) = (figure for figure in figures(cut) if figure.name == "slowdown-by-size")
    assert said in figure.caption
    assert "No panel shows large" in figure.caption


def test_the_numbers_of_a_figure_are_those_of_its_runs(cut: weir.Results) -> None:
    one, other = (cut.fates([run]) for run in cut.runs["run"])
    for whole, first, second in zip(cut.fates(), one, other, strict=True):
        assert whole.n == first.n + second.n
        assert whole.unfinished == first.unfinished + second.unfinished
    assert cut.fates([]) == []


@pytest.mark.parametrize(
    ("fates", "said"),
    [
        ([Fates("a", 9, 0, 0, None)], []),
        (
            [Fates("a", 1, 1, 0, None)],
            [
                "1 of 1 connection of a (100 %) was not done at the end of its run: it is left out "
                "of completion times and slowdowns."
            ],
        ),
        (
            [Fates("a", 8, 0, 1, None), Fates("b", 8, 0, 3, 7)],
            [
                "1 of 8 connections of a (12.5 %) and 3 of 8 connections of b (37.5 %) failed and "
                "are left out of completion times and slowdowns.",
                "Of b, there are completion times and slowdowns of only the first 7 connections of "
                "each run (measure.arrivals).",
            ],
        ),
        (
            [Fates(f"f{n}", 10, 1, 0, None) for n in range(7)],
            [
                "7 of 70 connections of 7 flows (10 %) were not done at the end of their run: they "
                "are left out of completion times and slowdowns, and the times of the others are "
                "too good."
            ],
        ),
    ],
)
def test_what_is_left_out_is_said_by_flow(fates: list[Fates], said: list[str]) -> None:
    assert left_out(fates) == said


@pytest.mark.parametrize(("kept", "is_said"), [(5, True), (599, True), (600, False), (601, False)])
def test_connections_beyond_the_rows_that_are_kept_are_said(
    kept: int, is_said: bool, tmp_path: Path
) -> None:
    scenario = WEB.replace("repeat = 2", f"arrivals = {kept}")
    (tmp_path / "web.toml").write_text(scenario, encoding="utf-8")
    results = weir.run(tmp_path / "web.toml", out=tmp_path, show_progress=False)
    (fates,) = results.fates()
    assert (fates.n, fates.most) == (min(kept, 600), kept if is_said else None)
    text = f"only the first {kept} connections of each run (measure.arrivals)"
    assert (text in results._repr_html_()) == is_said
    assert any(text in caution for caution in summary.cautions(results)) == is_said


def test_scenarios_without_such_flows_have_no_such_table(tmp_path: Path) -> None:
    text = '[[flow]]\nworkload = { kind = "file", size = "10kb" }\n'
    (tmp_path / "one.toml").write_text(text, encoding="utf-8")
    out = str(tmp_path / "out")
    ended = CliRunner().invoke(app, ["run", str(tmp_path / "one.toml"), "--json", "--out", out])
    assert ended.exit_code == 0, ended.stderr
    assert "arrivals" not in json.loads(ended.stdout)["rows"][0]


@pytest.mark.parametrize(
    ("keys", "late"),
    [
        ((), 2),
        (("--set", "flow.0.stop=1ms", "--set", "measure.duration=4ms"), 2),
        (("--set", "measure.duration=4ms"), 0),
        # Of a connection without a row it is not known whether it began.
        (("--set", "measure.duration=3010us", "--set", "measure.arrivals=1"), 0),
    ],
)
def test_connections_of_a_list_that_did_not_begin_are_counted(
    invoke: Invoke, tmp_path: Path, keys: tuple[str, ...], late: int
) -> None:
    scenario = tmp_path / "late.toml"
    scenario.write_text(
        """
        [topology]
        kind = "leaf-spine"
        rate = "10gbit"
        delay = "1us"
        queue = "100p"
        [[flow]]
        name = "planned"
        stack = "dctcp"
        min_rto = "1ms"
        [flow.workload]
        kind = "connections"
        list = ["h0 h4 0s 20kb", "h0 h5 3ms 20kb", "h1 h5 3ms 20kb"]
        [measure]
        duration = "2ms"
        """
    )
    result = invoke("run", str(scenario), "-n", "2", "--out", str(tmp_path), *keys)
    said = f"{2 * late} of the 6 listed for planned did not begin: the run or the flow had ended."
    assert result.exit_code == 0, result.stderr
    assert (said in " ".join(result.stdout.split())) == (late > 0)
    assert ("did not begin" in result.stdout) == (late > 0)
