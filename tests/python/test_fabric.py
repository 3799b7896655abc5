"""Measures of fabrics next to small tables done by hand, and the distribution of full bins."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from browser import opened
from conftest import Invoke
from made import described

import weir
from weir import _native
from weir.cells.protocol import Settings
from weir.comparison.tables import _notes
from weir.dynamics.fabric import largest_over_mean, size_groups, worst_queue_ms
from weir.graphics.select import cases
from weir.graphics.theme import significant
from weir.plots import figures
from weir.report import summary
from weir.studies.fabric import measures


def _arrivals(sizes: list[int], slowdowns: list[float | None]) -> pl.DataFrame:
    n = len(sizes)
    return pl.DataFrame(
        {
            "run": [0] * n,
            "flow": [0] * n,
            "arrival": list(range(n)),
            "size_bytes": sizes,
            "slowdown": slowdowns,
        },
        schema_overrides={"slowdown": pl.Float64},
    )


def test_groups_have_equal_numbers_of_connections_by_size() -> None:
    sizes = list(range(1_000, 0, -1))
    groups = size_groups(_arrivals(sizes, [float(size) for size in sizes]))
    assert [group.n for group in groups] == [50] * 20
    assert [group.up_to_bytes for group in groups] == list(range(50, 1_001, 50))
    first = {found.percent: found for found in groups[0].slowdown}
    assert first[50.0].value == 25.0
    assert first[99.0].value is None, "50 samples are too few"


def test_connections_that_did_not_end_count_but_have_no_slowdown() -> None:
    groups = size_groups(_arrivals([10, 20, 30, 40], [1.0, None, 2.0, None]), 2)
    assert [(group.n, group.not_ended) for group in groups] == [(2, 1), (2, 1)]
    assert size_groups(_arrivals([], [])) == []
    assert [group.n for group in size_groups(_arrivals([5, 6], [1.0, 1.0]))] == [1, 1]


def test_the_fullest_of_the_links_that_match_over_their_mean() -> None:
    links = pl.DataFrame(
        {
            "run": [0, 0, 0, 1, 1],
            "name": ["leaf0-spine0", "leaf0-spine1", "h0-leaf0", "leaf0-spine0", "leaf0-spine1"],
            "delivered_bytes": [300, 100, 9_999, 0, 0],
            "queue_delay_ms_p99": [0.1, 0.3, 0.3, None, None],
        }
    )
    found = largest_over_mean(links, "^leaf[0-9]+-spine")
    assert (found.mean, found.n) == (1.5, 1), "nothing crossed the second run's"
    worst = worst_queue_ms(links).rows()
    assert worst == [(0, "h0-leaf0", 0.3)]


@pytest.mark.parametrize(("flows", "ways"), [(4, 2), (5, 3), (3, 4)])
def test_the_distribution_of_the_fullest_bin(flows: int, ways: int) -> None:
    counted = Counter(max(Counter(way).values()) for way in product(range(ways), repeat=flows))
    expected = {load: count / ways**flows for load, count in counted.items()}
    assert measures.fullest(flows, ways) == pytest.approx(expected)


def test_a_hash_that_prefers_a_way_is_found() -> None:
    fair = [4] * 3 + [5] * 58 + [6] * 75 + [7] * 41 + [8] * 16 + [9] * 5 + [10] * 2
    assert (measures.balls_in_bins(fair, 16, 4).mean or 0.0) > 0.9
    assert (measures.balls_in_bins([16] * 200, 16, 4).mean or 0.0) < 1e-6
    assert (measures.balls_in_bins([4] * 200, 16, 4).mean or 0.0) < 1e-6, "too even is none either"
    assert measures.balls_in_bins([], 16, 4).mean is None


def test_ecmp_spreads_flows_over_ways_as_balls_over_bins() -> None:
    text = (files("weir.studies") / "fabric/fat-tree.toml").read_text(encoding="utf-8")
    scenario = _native.Scenario.parse(text, [], "fat-tree.toml")
    ways = described("fabric").constants["ways"]
    loads = []
    for seed in range(1, 201):
        links = pl.DataFrame(scenario.run(seed).table("links"))
        packets = links.filter(pl.col("name").is_in(ways))["delivered_packets"].to_list()
        each = sum(packets) // 16
        assert sum(packets) == 16 * each
        assert all(count % each == 0 for count in packets)
        loads.append(max(packets) // each)
    assert (measures.balls_in_bins(loads, 16, 4).mean or 0.0) > 0.01


def test_a_deadlock_is_named_below_the_table(tmp_path: Path) -> None:
    scenario = str(files("weir.studies") / "fabric/ring.toml")
    results = weir.run(scenario, repeat=2, out=tmp_path, show_progress=False)
    assert set(results.runs["deadlock"]) <= {"a-b, b-c, c-a", "b-c, c-a, a-b", "c-a, a-b, b-c"}
    assert "2 of 2 runs ended in a deadlock of pauses: " in _notes(results)
    label = results.runs["label"][0]
    assert measures.deadlocks(results, label).mean == 1.0
    assert measures.dropped(results, label).mean == 0.0
    assert measures.cycle(results, label) == f"the first: {results.runs['deadlock'][0]}"
    # `rtt` of a graph is only what queues in BDP refer to.
    page = results.report().read_text(encoding="utf-8")
    assert "on a path with the links of a graph" in page
    assert "round-trip time of 40" not in page
    paused = results.links.filter(pl.col("name") == "a-b")["paused_ratio"]
    assert paused.is_between(0.5, 1.0).all()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_has_a_box_for_a_deadlock_at_its_top(
    tmp_path: Path, chromium: Any, scheme: str
) -> None:
    scenario = str(files("weir.studies") / "fabric/ring.toml")
    results = weir.run(scenario, repeat=2, out=tmp_path / "results", show_progress=False)
    page = results.report()
    links = results.runs["deadlock"][0].split(", ")
    with opened(chromium, page, color_scheme=scheme) as shown:
        box = shown.get_by_role("alert")
        text = box.inner_text().replace("\N{NO-BREAK SPACE}", " ")
        assert "2 of 2 runs ended in a deadlock of pauses" in text
        end = significant(results.runs["sim_s"][0])
        assert f"Seed 1, at {end} s: {' → '.join([*links, links[0]])}." in text
        heading = shown.get_by_role("heading", level=2).first.bounding_box()
        assert box.bounding_box()["y"] < heading["y"], "before every section"
        assert box.bounding_box()["y"] < 600, "seen without scrolling"


def test_a_report_without_a_deadlock_has_no_box(racks: weir.Results) -> None:
    page = racks.report()
    assert 'role="alert"' not in page.read_text(encoding="utf-8")


def test_groups_of_the_slowdown_that_hpcc_prints() -> None:
    arrivals = _arrivals([10, 20, 30, 40], [9.0, 9.0, 9.0, None]).with_columns(
        pl.Series("slowdown_hpcc", [1.0, None, 2.0, None], dtype=pl.Float64)
    )
    groups = size_groups(arrivals, 2, measure="slowdown_hpcc")
    assert [(group.n, group.not_ended) for group in groups] == [(2, 1), (2, 1)]
    many = _arrivals(list(range(1, 101)), [9.0] * 100).with_columns(
        (pl.col("size_bytes") / 10.0).alias("slowdown_hpcc")
    )
    (group,) = size_groups(many, 1, measure="slowdown_hpcc")
    assert group.slowdown[0].value == 5.0


def test_tails_are_compared_seed_by_seed(tmp_path: Path) -> None:
    scenario = str(files("weir.studies") / "fabric/hadoop.toml")
    results = weir.run(
        scenario,
        sets={"measure.duration": "400us", "topology.feedback": '{ kind = "int" }'},
        sweep={"flow.*.stack": ["hpcc", "dctcp"]},
        repeat=2,
        out=tmp_path,
        show_progress=False,
    )
    hpcc, dctcp = (case["label"] for case in results.cases)
    same = measures.tail_ratio(results, hpcc, hpcc)
    assert (same.mean, same.n) == (1.0, 2)
    ratio = measures.tail_ratio(results, hpcc, dctcp)
    over = measures.tail(results, hpcc).mean, measures.tail(results, dctcp).mean
    assert None not in over
    assert ratio.mean is not None
    assert ratio.mean != 1.0
    assert measures.dropped(results, hpcc).mean == 0.0


def test_every_scenario_of_the_study_can_run() -> None:
    study = described("fabric")
    sources = study.sources(Settings())
    assert {"figure 17", "ECMP", "hadoop", "slow uplink, spray"} <= set(sources)
    for label, source in sources.items():
        point = [(key, value) for key, value in source.overrides if key != "measure.repeat"]
        scenario = _native.Scenario.parse(source.text, point, label)
        scenario.check("sim")
        if label != "figure 17":  # there one way leads from host to host
            with pytest.raises(_native.ScenarioError, match="only world sim"):
                scenario.check("udp")


_RACKS = """
name = "racks"

[topology]
kind = "leaf-spine"
leaves = 2
hosts = 3
spines = 2
rate = "10gbit"
delay = "1us"
routing = "ecmp"

[[flow]]
name = "background"
stack = "dctcp"
min_rto = "1ms"
workload = { kind = "flow-sizes", sizes = "fb-hadoop", load = "40%" }

[measure]
duration = "20ms"
sample_interval = "0s"
"""


_TOPOLOGY = """\
6 2 5
4 5
0 4 10Gbps 1us 0
1 4 10Gbps 1us 0
2 5 10Gbps 1us 0
3 5 10Gbps 1us 0
4 5 40Gbps 1us 0
"""
_ONE_HOST = """\
4 3 4
1 2 3
0 1 1Gbps 1us 0
1 2 1Gbps 1us 0
2 3 1Gbps 1us 0
3 1 1Gbps 1us 0
"""
_GRAPH = """
[topology]
kind = "graph"
link = "topology.txt"
queue = "300kb"
routing = "ecmp"

[[flow]]
name = "background"
stack = "dctcp"
min_rto = "1ms"
from = "*"
to = "*"
workload = { kind = "flow-sizes", sizes = "fb-hadoop", load = "40%" }

[measure]
duration = "20ms"
sample_interval = "0s"
"""


@pytest.fixture(scope="module")
def racks(tmp_path_factory: pytest.TempPathFactory) -> weir.Results:
    folder = tmp_path_factory.mktemp("racks")
    (folder / "racks.toml").write_text(_RACKS, encoding="utf-8")
    return weir.run(folder / "racks.toml", repeat=2, out=folder, show_progress=False)


def test_the_bottleneck_of_a_fabric_is_where_packets_waited_longest(racks: weir.Results) -> None:
    watched = racks.links.filter("monitored").sort("run")
    waits = racks.links.group_by("run").agg(pl.col("queue_delay_ms_p99").max()).sort("run")
    assert watched["queue_delay_ms_p99"].to_list() == waits["queue_delay_ms_p99"].to_list()
    assert racks.per_run["queue_delay_ms_p99"].to_list() == waits["queue_delay_ms_p99"].to_list()
    assert racks.per_run["utilisation"].to_list() == watched["utilisation"].to_list()


def test_a_report_draws_the_links_of_a_fabric_and_slowdowns_by_size(racks: weir.Results) -> None:
    drawn = {figure.name: figure for figure in figures(racks)}
    links = drawn["fabric"].data
    assert links.height == 2 * 3 + 2 * 2, "two directions are one line"
    busiest = racks.links.group_by("name").agg(pl.col("utilisation").mean())["utilisation"].max()
    assert links["use"].max() == pytest.approx(100 * busiest)  # type: ignore[operator]
    assert links.filter("is_longest").height == 1
    assert set(links["one_y"]) | set(links["other_y"]) == {0, 1, 2}
    slowdowns = drawn["slowdown-by-size"].data
    assert "background, P50" in slowdowns["panel"].to_list()
    assert slowdowns["value"].min() >= 1  # type: ignore[operator]
    question = summary.question(racks, cases(racks))
    assert "the links of a leaf-spine" in question
    assert "bottleneck" not in question


def test_a_report_of_a_graph_whose_hosts_are_drawn_has_slowdowns_by_size(tmp_path: Path) -> None:
    (tmp_path / "topology.txt").write_text(_TOPOLOGY, encoding="utf-8")
    (tmp_path / "graph.toml").write_text(_GRAPH, encoding="utf-8")
    results = weir.run(tmp_path / "graph.toml", out=tmp_path, show_progress=False)
    assert set(results.scan("arrivals").collect()["from_node"]) == {0, 1, 2, 3}
    drawn = {figure.name: figure for figure in figures(results)}
    assert "background, P50" in drawn["slowdown-by-size"].data["panel"].to_list()
    assert "fabric" not in drawn, "its nodes have no tiers"


def test_a_drawn_graph_with_one_host_ends_the_command_with_2(
    tmp_path: Path, invoke: Invoke
) -> None:
    (tmp_path / "graph.toml").write_text(_GRAPH.replace('to = "*"', 'to = "s1"'), encoding="utf-8")
    (tmp_path / "topology.txt").write_text(_ONE_HOST, encoding="utf-8")
    outcome = invoke("run", tmp_path / "graph.toml")
    assert outcome.exit_code == 2
    said = " ".join(outcome.output.split())
    assert "flow.0.from: '*' is not allowed; it draws hosts" in said
    assert "this graph has 1, and 2 to 4096 are needed" in said


def test_a_report_shows_the_beginning_of_a_long_list(tmp_path: Path) -> None:
    lines = [f"h{n % 4} h{(n + 1) % 4} {n}us 1kb" for n in range(150)]
    (tmp_path / "listed.txt").write_text("# FROM TO START SIZE\n" + "\n".join(lines) + "\n")
    text = _RACKS.split("[[flow]]")[0] + _LISTED
    (tmp_path / "listed.toml").write_text(text, encoding="utf-8")
    results = weir.run(tmp_path / "listed.toml", out=tmp_path, show_progress=False)
    assert results.scan("arrivals").collect().height == 150
    listed = results.cases[0]["scenario"]["flow"][0]["workload"]["list"]
    assert listed == [line.replace("1000us", "1ms").replace(" 0us", " 0s") for line in lines]
    page = results.report()
    text = page.read_text(encoding="utf-8")
    assert lines[99] in text
    assert lines[100] not in text
    assert "and 50 more, in manifest.json" in text


def test_a_file_with_a_mistake_ends_the_command_with_2(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "bad.cm").write_text("Nodes 4\nConnections 1\n0->1 start 0 size 1 trigger 2\n")
    text = _RACKS.split("[[flow]]")[0] + _LISTED.replace("listed.txt", "bad.cm")
    (tmp_path / "bad.toml").write_text(text, encoding="utf-8")
    outcome = invoke("run", tmp_path / "bad.toml")
    assert outcome.exit_code == 2
    assert "bad.cm', line 3: `trigger` is not supported" in " ".join(outcome.output.split())


_LISTED = """[[flow]]
name = "listed"
stack = "dctcp"
workload = { kind = "connections", list = "listed.txt" }

[measure]
duration = "50ms"
sample_interval = "0s"
"""
