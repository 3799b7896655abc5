"""Spaces, expressions, published tables and the engine of searches."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from weir.base.errors import InputError
from weir.results.metrics import per_run
from weir.running.runner import execute
from weir.scenario.source import Source
from weir.search import goals, published
from weir.search import space as spaces
from weir.search.engine import Evolution
from weir.search.expressions import Expression, Observation
from weir.search.findings import Target
from weir.search.journal import Journal
from weir.search.loop import Budget
from weir.search.problem import held_out
from weir.search.racing import Candidate, Goal, Race, allowance, hypervolume
from weir.search.shrink import Shrinker

PAIR = """
[topology]
rate = "5mbit"
[[flow]]
name = "first"
stack = "cubic"
[[flow]]
name = "second"
stack = "copa(delta=0.1)"
[measure]
duration = "2s"
"""


@pytest.fixture(scope="module")
def seen() -> Observation:
    """A short run of two flows, whose reference is itself."""
    tables = execute(Source(PAIR, "pair").effective(), 1)
    return Observation.of(tables, Observation.of(tables))


def metrics(seen: Observation) -> dict[str, float | None]:
    """Every metric of the run, as results have them."""
    frames = {
        name: table.with_columns(run=pl.lit(0, pl.UInt32)) for name, table in seen.tables.items()
    }
    tables = (frames["summary"], frames["flows"], frames["links"], pl.DataFrame())
    return per_run(*tables, frames["requests"].select("run", "latency_ms")).row(0, named=True)


@pytest.mark.parametrize(
    ("text", "low", "middle", "high"),
    [
        ("{0.5..0.9}", "0.5", "0.7", "0.9"),
        ("{1..64}", "1", "33", "64"),
        ("{1ms..1s}", "1ms", "31.6ms", "1s"),
        ("{0ms..1s}", "0us", "500ms", "1s"),
        ("{1mbit..1gbit}", "1mbit", "31.6mbit", "1000mbit"),
        ("{0.1bdp..10bdp}", "0.1bdp", "1bdp", "10bdp"),
        ("{1p..100p}", "1p", "10p", "100p"),
        ("{0%..5%}", "0%", "2.5%", "5%"),
        ("{0.01%..1% log}", "0.01%", "0.1%", "1%"),
        ("{reno, cubic, bbr}", "reno", "cubic", "bbr"),
    ],
)
def test_ranges_go_from_end_to_end(text: str, low: str, middle: str, high: str) -> None:
    space = spaces.space({"key": text})
    assert [space.at([place])["key"] for place in (0.0, 0.5, 1.0)] == [low, middle, high]


def test_a_value_may_have_several_ranges_a_key_be_absent_and_a_list_have_any_length() -> None:
    space = spaces.space(
        {
            "topology.forward.rate_steps": '[{ at = "{1s..4s}", rate = "{1mbit..9mbit}" }]',
            "topology.forward.loss?": "{1%..3%}",
            "topology.forward.drop": "[{1..100 x0..3}]",
            "topology.queue.kind": ("codel", "pie"),
        }
    )
    low = space.at([0.0] * len(space.genes))
    assert low["topology.forward.rate_steps"] == '[{ at = "1s", rate = "1mbit" }]'
    assert low["topology.forward.drop"] == "[]"
    assert "topology.forward.loss" not in low
    high = space.at([1.0] * len(space.genes))
    assert high["topology.forward.drop"] == "[100]", "equal numbers are one"
    assert (high["topology.forward.loss"], high["topology.queue.kind"]) == ("3%", "pie")
    assert space.default() == {}


def test_the_default_of_a_stack_has_no_parameter_that_varies() -> None:
    templates = {
        "cubic(hystart={linux, off})": "cubic",
        "go-back-n({1..64})/none": "go-back-n/none",
        "copa(delta={0.1..1},mode=default)": "copa(mode=default)",
        "rack(tlp=off)/aimd(1,{0.5..0.9})": "rack(tlp=off)/aimd(1)",
    }
    for template, default in templates.items():
        assert spaces.space({"flow.0.stack": template}).default() == {"flow.0.stack": default}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("plain", "nothing varies"),
        ("{1ms..1mbit}", "key: {1ms..1mbit}: '1ms' is not a rate"),
        ("{5..1}", "the first end has to be the smaller one"),
        ("{0..1 log}", "a logarithm needs a first end above 0"),
        ("{1bdp..2p}", "both ends need the same unit"),
        ("{one}", "neither a range"),
        ("[{1..9 x5..2}]", "items"),
    ],
)
def test_what_is_no_range_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InputError) as refused:
        spaces.space({"key": text})
    assert reason in str(refused.value)


def test_expressions_see_metrics_columns_flows_and_the_reference(seen: Observation) -> None:
    first, second = (float(flow["goodput_mbps"]) for flow in seen.flows)
    expected = {
        "goodput": seen.run["goodput_mbps"],
        'goodput_mbps("copa")': second,
        'share("second")': second / (first + second),
        "max(flows.goodput_mbps) / min(flows.goodput_mbps)": max(first, second)
        / min(first, second),
        "goodput - old(goodput)": 0.0,
        "links.utilisation * 2": 2 * float(seen.link["utilisation"]),
        "-log(sqrt(4)) + mean(1, 3) - 2 ** 2": -(2**0.5 * 0 + 0.6931471805599453) - 2,
        "rtt_inflation": metrics(seen)["rtt_inflation"],
        "power": metrics(seen)["power_mbps_per_s"],
        "retransmit_ratio": metrics(seen)["retransmit_ratio"],
    }
    for text, value in expected.items():
        assert Expression.parse(text).value(seen) == pytest.approx(value), text
    assert Expression.parse("fct / 0").value(seen) is None
    assert Expression.parse("fct").value(seen) is None, "no flow completes"
    bound = Expression.bound("queue_delay_ms_p95 < 5")
    assert bound.value(seen) == pytest.approx(float(seen.link["queue_delay_ms_p95"]) - 5)
    assert Expression.bound("5 >= 7").value(seen) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("goodputt", "did you mean goodput"),
        ("__import__('os')", "there is no function '__import__'"),
        ("flows.__class__.x", "not allowed"),
        ("open(goodput)", "there is no function 'open'"),
        ("goodput if 1 else 2", "not allowed"),
        ("goodput +", "not an expression"),
    ],
)
def test_other_expressions_are_refused(text: str, reason: str) -> None:
    with pytest.raises(InputError) as refused:
        Expression.parse(text)
    assert reason in str(refused.value)


def test_an_unknown_flow_or_column_is_named(seen: Observation) -> None:
    for text, reason in (('share("x")', "no flow 'x'"), ("links.x", "no column of links 'x'")):
        with pytest.raises(InputError, match=reason):
            Expression.parse(text).value(seen)
    with pytest.raises(InputError, match="not a bound"):
        Expression.bound("goodput")


def test_budgets_are_runs_or_times() -> None:
    assert (Budget.parse("200").runs, Budget.parse("2min").seconds) == (200, 120)
    for text in ("0", "-3", "1.5", "many"):
        with pytest.raises(InputError, match="a number of runs"):
            Budget.parse(text)


def test_the_engine_finds_a_minimum_that_random_points_do_not() -> None:
    genes = spaces.space(dict.fromkeys("abcd", "{0.0..1.0}")).genes

    def best(share: float) -> float:
        engine, found = Evolution(genes, 3, share), []
        for _ in range(40):
            points = engine.ask(16)
            scores = [sum((x - 0.37) ** 2 for x in point) for point in points]
            engine.tell(points, scores)
            found += scores
        return min(found)

    assert best(0.2) < 1e-4 < 1e-3 < best(1.0)


def test_the_engine_asks_the_same_after_the_same_answers() -> None:
    genes = spaces.space({"a": "{1..9}", "b?": "{x, y, z}"}).genes
    one, other = Evolution(genes, 5), Evolution(genes, 5)
    for _ in range(6):
        points = one.ask(8)
        assert points == other.ask(8)
        scores = [None if point[0] > 0.9 else point[0] for point in points]
        one.tell(points, scores)
        other.tell(points, scores)
    assert Evolution(genes, 6).ask(8) != Evolution(genes, 5).ask(8)


def test_the_last_score_of_a_point_counts() -> None:
    genes = spaces.space(dict.fromkeys("abc", "{0.0..1.0}")).genes

    def near_the_first(*corrections: float) -> int:
        engine = Evolution(genes, 3, 0.0)
        points = engine.ask(16)
        engine.tell(points, [-9.0, *range(15)])
        for score in corrections:
            engine.tell(points[:1], [score])
        children = engine.ask(200)
        return sum(a == b for child in children for a, b in zip(child, points[0], strict=True))

    assert near_the_first(99.0) < near_the_first() / 10


def test_networks_between_those_of_a_sweep_are_held_out() -> None:
    sweep = {"topology.rtt": ("10ms", "40ms", "160ms"), "topology.queue.kind": ("codel", "pie")}
    assert held_out(sweep, []) == {
        "topology.rtt": ("20ms", "80ms"),
        "topology.queue.kind": ("codel", "pie"),
    }
    assert held_out(sweep, ["topology.rtt=1s"])["topology.rtt"] == ("1s",)


def test_the_indifference_zone_narrows_with_runs_and_widens_with_spread() -> None:
    rng = random.Random(1)  # noqa: S311
    noise = [rng.gauss(0, 1) for _ in range(27)]
    few, many = (allowance(noise[:n], 0.1, 9) for n in (3, 27))
    assert few > many > 0
    assert allowance([x / 100 for x in noise], 0.1, 9) < many


def test_the_area_of_a_front() -> None:
    assert hypervolume([(1, 2), (2, 1), (3, 3)], (4, 4)) == 3 * 2 + 2 * 1


def test_a_front_of_nothing_is_empty_and_values_of_a_refused_default_scale_nothing() -> None:
    goals = [Goal(Expression.parse("goodput"), -1), Goal(Expression.parse("rtt_ms_p95"), 1)]
    # A race that runs nothing needs no loop.
    race = Race(None, goals, (), ({}, {}), 1, 0.01)  # type: ignore[arg-type]
    assert race.front([]) == []
    race.set_scales(Candidate({}, values={(0, 1): ()}, refused="it cannot run"))
    assert race.scales == [[1.0, 1.0]] * 2


def test_of_searches_in_one_second_the_last_one_is_resumed(tmp_path: Path) -> None:
    opened = [Journal.open(tmp_path, "tune", {}, resume=False) for _ in range(11)]
    newest = Journal.open(tmp_path, "tune", {}, resume=True)
    assert newest.path == opened[-1].path


def test_a_published_number_is_as_exact_as_its_digits(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text(
        "topology.rtt, repeats, goodput, fct\n10ms, 5, 9.10, 3e2\n20ms, , 8±0.3,\n", "utf-8"
    )
    table = published.read(file, 1)
    assert [(c.value, c.error, c.repeats) for c in table.cells] == [
        (9.1, pytest.approx(0.005), 5),
        (300, 50, 5),
        (8, 0.3, 1),
    ]
    assert table.name(table.cells[0]) == "10ms, goodput"
    file.write_text("topology.rtt,goodput\n10ms,fast\n", "utf-8")
    with pytest.raises(InputError, match="goodput fast: not a number"):
        published.read(file, 1)


def test_shrinking_leaves_what_the_failure_needs() -> None:
    keys = {
        "topology.rate": "12.37mbit",
        "topology.forward.loss": "1.23%",
        "topology.forward.drop": "[3, 57, 112]",
        "measure.duration": "40s",
    }
    small = Shrinker(
        lambda k: (
            "57" in k.get("topology.forward.drop", "")
            and float(k.get("topology.rate", "10mbit").removesuffix("mbit")) > 11
        ),
        most=100,
    ).shrink(keys)
    assert small == {
        "topology.rate": "12mbit",
        "topology.forward.drop": "[57]",
        "measure.duration": "5s",
    }


@pytest.mark.parametrize("name", goals.WEAKNESSES)
def test_the_scenario_and_the_space_of_each_goal_are_valid(name: str) -> None:
    goal = goals.WEAKNESSES[name]
    source = goal.of("reno", "cubic").scenario
    space = spaces.space(goal.space)
    base = source.effective()
    rng = random.Random(2)  # noqa: S311
    for _ in range(20):
        source.at(space.at([rng.random() for _ in space.genes]), [], base)


def test_goals_take_their_stacks_from_the_words() -> None:
    (one,) = goals.hunts(["regress", "reno", "cubic"], None, None)
    assert (one.stack, one.against) == ("cubic", "reno")
    assert [h.against for h in goals.hunts(["starve", "harm"], "bbr", None)] == ["bbr", "cubic"]
    assert len(goals.hunts([], "bbr", None)) == len(goals.IN_TURN)
    for words, stack, reason in (
        (["regress", "reno"], None, "takes two stacks"),
        (["starve"], None, "name a stack"),
        (["starved"], "bbr", "did you mean starve"),
        (["disagree", "udp"], "bbr", "only 'sim kernel'"),
    ):
        with pytest.raises(InputError, match=reason):
            goals.hunts(words, stack, None)


def test_worlds_are_compared_with_hosts_of_one_kind() -> None:
    (hunt,) = goals.hunts(["disagree", "sim", "kernel"], "rack/reno", None)
    target = Target.of(hunt, {}, (), "sim")
    ours, theirs = target.source, target.reference
    assert theirs is not None
    assert target.crosses_worlds
    assert {key for key, _ in ours.overrides} >= {"flow.0.send_buffer", "flow.0.recv_buffer"}
    assert [key for key, _ in theirs.overrides] == ["flow.0.stack"], "a guest has its own"
    with pytest.raises(InputError, match="leave out --world"):
        Target.of(hunt, {}, (), "kernel-virtual")
    assert not Target.of(goals.hunts(["starve"], "bbr", None)[0], {}, (), "sim").crosses_worlds
    # No key of the space is random: both worlds would draw their own numbers.
    assert not {"loss", "jitter", "reorder", "duplicate"} & {
        key.key.rpartition(".")[2] for key in target.space.keys
    }


def test_observations_without_data_frames_have_the_same_metrics(seen: Observation) -> None:
    other = Observation(seen.flows, seen.link, metrics(seen), {})
    for text in ("goodput", "jain_index", "links.utilisation", "rtt_inflation"):
        assert Expression.parse(text).value(other) == Expression.parse(text).value(seen), text
    assert isinstance(seen.tables["flows"], pl.DataFrame)
