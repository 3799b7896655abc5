"""What reports say of radio networks."""

from __future__ import annotations

from pathlib import Path

import pytest
from made import compared
from test_report import Page, written

import weir
from weir.plots import figures

CHAIN = """
name = "chain"
[topology]
kind = "radio"
[topology.radio]
placement = "chain"
hops = 4
[[flow]]
stack = "reno"
[measure]
duration = "5s"
frames = 100000
"""


def run(out: Path, **sets: str) -> weir.Results:
    keys = {key.replace("__", "."): value for key, value in sets.items()}
    return weir.run(CHAIN, out=out, sets=keys, jobs=1, show_progress=False)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> tuple[weir.Results, Page]:
    results = run(tmp_path_factory.mktemp("chain"))
    return results, written(results)


def test_the_map_shows_nodes_ends_and_links(chain: tuple[weir.Results, Page]) -> None:
    results, _ = chain
    (drawn,) = [figure for figure in figures(results) if figure.name == "topology"]
    assert drawn.data["x_m"].to_list() == [0.0, 200.0, 400.0, 600.0, 800.0]
    assert drawn.data["end"].to_list() == ["sender", "", "", "", "receiver"]
    nodes = results.scan("nodes").collect()
    assert drawn.data["airtime"].to_list() == [ratio * 100 for ratio in nodes["airtime_ratio"]]
    assert "Lines are links" in drawn.caption
    rules = [layer for layer in drawn.spec["layer"] if layer["mark"]["type"] == "rule"]
    assert len(rules) == 1


def test_both_axes_have_one_scale(chain: tuple[weir.Results, Page]) -> None:
    results, _ = chain
    (drawn,) = [figure for figure in figures(results) if figure.name == "topology"]
    encoding = drawn.spec["layer"][-1]["encoding"]
    (left, right), (low, high) = (encoding[axis]["scale"]["domain"] for axis in "xy")
    per_pixel = (right - left) / drawn.spec["width"]
    assert (high - low) / drawn.spec["height"] == pytest.approx(per_pixel)


def test_the_tables_have_every_node_and_the_way_of_the_flow(
    chain: tuple[weir.Results, Page],
) -> None:
    results, page = chain
    assert "Radio network" in page.text
    assert "Nodes: chain" in page.text
    nodes = results.scan("nodes").collect()
    for name in ("rts", "collisions", "lost_frames"):
        assert all(f" {count} " in page.text for count in nodes[name]), name
    for retries in nodes["short_retries"] + nodes["long_retries"]:
        assert f" {retries} " in page.text
    assert "0 to 4" in page.text
    assert "route changes" in page.text


def test_without_frames_nodes_stand_alone(tmp_path: Path) -> None:
    results = run(tmp_path, measure__frames="0")
    (drawn,) = [figure for figure in figures(results) if figure.name == "topology"]
    assert all(layer["mark"]["type"] != "rule" for layer in drawn.spec["layer"])
    assert "with measure.frames only" in drawn.caption
    assert drawn.svg().startswith("<svg")


def test_drops_are_listed_by_cause(tmp_path: Path) -> None:
    results = run(tmp_path, topology__radio__queue="1")
    (drawn,) = [figure for figure in figures(results) if figure.name == "topology"]
    nodes = results.scan("nodes").collect()
    assert drawn.data["dropped"].sum() > 0
    for causes, queue in zip(drawn.data["causes"], nodes["dropped_queue"], strict=True):
        assert (f"queue {queue}" in causes) == (queue > 0)
    assert "dropped: queue" in written(results).text


def test_a_network_of_links_has_no_map(tmp_path: Path) -> None:
    results = compared(tmp_path, "reno")
    assert all(figure.name != "topology" for figure in figures(results))
    assert "Radio network" not in written(results).text
