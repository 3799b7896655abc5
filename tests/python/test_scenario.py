"""What is written on the command line, and the plan that comes of it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import weir
from weir.base.errors import InputError
from weir.scenario.plans import Comparison, scenario_plan
from weir.scenario.source import Source, parse_assignments, parse_sweep, read
from weir.scenario.sweep import plan, points

TWO_FLOWS = """
name = "two"
[[flow]]
stack = "reno"
[[flow]]
stack = "cubic"
[measure]
duration = "1s"
repeat = 2
seed = 7
[sweep]
"topology.queue" = ["1bdp", "2bdp"]
"flow.*.initial_window" = [2, 10]
"""


def test_commas_inside_brackets_and_quotes_belong_to_the_value() -> None:
    assert parse_sweep(["flow.0.stack=aimd(1,0.5),reno", 'name="a,b",c']) == {
        "flow.0.stack": ("aimd(1,0.5)", "reno"),
        "name": ('"a,b"', "c"),
    }


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("topology.rate", "write it as key=value"),
        ("=3", "write it as key=value"),
        ("topology.rate=1mbit,,2mbit", "a value is empty"),
        ("topology.rate=", "a value is empty"),
    ],
)
def test_a_malformed_sweep_is_refused(item: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_sweep([item])


def test_a_key_cannot_be_swept_twice() -> None:
    with pytest.raises(InputError, match="swept twice"):
        parse_sweep(["a=1", "a=2"])


def test_an_assignment_keeps_everything_after_the_first_sign() -> None:
    assert parse_assignments(["a = b=c"], "--set") == (("a", "b=c"),)


def test_points_are_the_cross_product() -> None:
    assert list(points({})) == [{}]
    assert list(points({"a": ("1", "2"), "b": ("x",)})) == [
        {"a": "1", "b": "x"},
        {"a": "2", "b": "x"},
    ]


def test_a_plan_has_every_point_of_the_file_and_every_repeat() -> None:
    plan = scenario_plan(Source(TWO_FLOWS, "test"), {})
    assert len(plan.cases) == 4
    assert plan.seeds == (7, 8)
    assert len(plan.runs) == 8
    assert len({run.key for run in plan.runs}) == 8
    assert plan.cases[3].point == {"topology.queue": "2bdp", "flow.*.initial_window": "10"}
    assert plan.cases[3].scenario.fields["flow"][1]["initial_window"] == 10
    assert plan.cases[0].stack == "rack/reno + rack/cubic"


def test_swept_stacks_are_what_is_compared() -> None:
    plan = scenario_plan(Source(TWO_FLOWS, "test"), {"flow.0.stack": ("reno", "bbr")}, repeat=1)
    assert plan.swept == ("topology.queue", "flow.*.initial_window")
    assert {case.series for case in plan.cases} == {"reno", "bbr"}
    assert {case.stack for case in plan.cases} == {
        "rack/reno + rack/cubic",
        "rack/bbr + rack/cubic",
    }


def test_a_sweep_on_the_command_line_replaces_that_of_the_file() -> None:
    plan = scenario_plan(Source(TWO_FLOWS, "test"), {"topology.queue": ("4bdp",)}, repeat=1)
    assert [case.point["topology.queue"] for case in plan.cases] == ["4bdp", "4bdp"]
    assert "--sweep topology.queue=4bdp" in plan.command
    assert "measure.repeat=1" in plan.command


def test_the_same_runs_have_the_same_keys_however_they_are_written() -> None:
    one = Comparison(stacks=("reno",), rate="10mbit", repeat=2).plan()
    other = Comparison(stacks=("rack/reno",), rate="10000kbit", repeat=2).plan()
    assert one.digest == other.digest
    assert one.digest != Comparison(stacks=("reno",), rate="10mbit", repeat=2, seed=2).plan().digest


def test_stacks_share_the_seeds_of_their_repeats() -> None:
    plan = Comparison(stacks=("reno", "cubic"), repeat=3, seed=5).plan()
    seeds = {case.label: [r.seed for r in plan.runs if r.case is case] for case in plan.cases}
    assert seeds == {"reno": [5, 6, 7], "cubic": [5, 6, 7]}


def test_each_case_is_repeated_as_often_as_its_scenario_says() -> None:
    often = Source(TWO_FLOWS, "test", (("measure.repeat", "3"),))
    sources = {"once": often.with_override("measure.repeat", "1"), "often": often}
    made = plan("two", "", sources, {})
    assert made.repeat == 3
    assert sorted({(run.case.series, run.seed) for run in made.runs}) == [
        ("often", 7),
        ("often", 8),
        ("often", 9),
        ("once", 7),
    ]


def test_too_many_runs_are_taken_for_a_slip() -> None:
    with pytest.raises(InputError, match="more than 100000 runs"):
        Comparison(stacks=("reno", "cubic"), repeat=60_000).plan()


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, message in [
        (tmp_path / "none.toml", "no such file"),
        (tmp_path, "is a directory"),
        (binary, "not a text file"),
    ]:
        with pytest.raises(InputError, match=message):
            read(path)


def test_a_mistake_in_a_file_is_reported_with_its_line() -> None:
    with pytest.raises(weir.ScenarioError, match=r"test, line 4.*stak"):
        Source('name = "x"\n[[flow]]\ncount = 1\nstak = "reno"\n', "test").effective()


def test_a_sweep_without_bounds_is_refused_at_once() -> None:
    sweep = {f"flow.0.{key}": tuple(map(str, range(1, 101))) for key in ("initial_window", "mss")}
    sweep["topology.queue"] = tuple(f"{n}p" for n in range(1, 101))
    began = time.process_time()
    with pytest.raises(InputError, match=r"at least 2000000 runs .* at most 100000; sweep fewer"):
        plan("two", "", {"two": Source(TWO_FLOWS, "two.toml")}, sweep)
    assert time.process_time() - began < 1


def test_a_scenario_file_has_an_end(tmp_path: Path) -> None:
    (tmp_path / "endless.toml").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="longer than 16777216 bytes"):
        read(tmp_path / "endless.toml")
