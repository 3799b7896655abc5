"""The compiled module by itself: quantities, scenarios, errors, tables."""

import json
import threading
import time
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from conftest import REAL_TIME

import weir
from weir import _native
from weir.guest.world import tables_of
from weir.results.results import TABLES
from weir.running import runner
from weir.scenario.plans import Comparison, scenario_plan
from weir.scenario.source import Source

SCENARIO = """
[topology]
rate = "10mbit"
[[flow]]
stack = "reno"
[measure]
duration = "2s"
"""


def checked(*overrides: tuple[str, str]) -> _native.Scenario:
    return _native.Scenario.parse(SCENARIO, overrides, "short.toml")


def test_the_package_and_its_core_agree_on_the_version() -> None:
    assert weir.__version__ == _native.version()


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("time", "40ms", 0.04),
        ("rate", "10mbit", 1e7),
        ("size", "64kib", 65536),
        ("ratio", "1.5%", 0.015),
    ],
)
def test_quantities_come_in_their_base_unit(kind: str, text: str, value: float) -> None:
    assert _native.parse_quantity(kind, text) == value  # type: ignore[arg-type]


def test_a_quantity_without_unit_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(ValueError, match=r"'10' is not a rate: write a number with bit, kbit"):
        _native.parse_quantity("rate", "10")


def test_a_scenario_comes_back_complete() -> None:
    fields = checked(("flow.0.stack", "cubic"), ("topology.queue", "2bdp")).fields()
    assert fields["name"] == "short"
    assert fields["flow"][0]["stack"] == "rack/cubic"
    assert fields["topology"]["queue"] == "2bdp"
    assert fields["measure"]["warmup"] == "0s"


def test_a_mistake_in_a_scenario_is_a_value_error_that_names_it() -> None:
    with pytest.raises(weir.ScenarioError, match=r"topology\.rate=10: 10 is not allowed; write"):
        checked(("topology.rate", "10"))
    assert issubclass(weir.ScenarioError, ValueError)
    with pytest.raises(weir.ScenarioError, match="not a canonical scenario"):
        _native.Scenario.from_json("[[flow]]")


def test_a_case_is_lowered_once_however_often_it_is_run() -> None:
    before = _native._lowered()
    plan = Comparison(["reno"], rate="10mbit", duration="1s", repeat=2).plan()
    tables = [runner.execute(run.case.scenario, run.seed)["flows"] for run in plan.runs]
    assert len(tables) == 2
    assert _native._lowered() == before + 1


def test_a_value_of_a_sweep_is_lowered_once() -> None:
    swept = SCENARIO + '[sweep]\n"topology.queue" = ["1bdp", "2bdp"]\n'
    before = _native._lowered()
    plan = scenario_plan(Source(swept, "swept.toml"), {}, repeat=1)
    assert [case.label for case in plan.cases] == [
        "swept, topology.queue=1bdp",
        "swept, topology.queue=2bdp",
    ]
    # The scenario without its sweep, and each value.
    assert _native._lowered() == before + 3


def test_a_point_changes_what_was_overridden_and_nothing_else() -> None:
    slow = checked(("topology.rate", "5mbit")).at([("topology.queue", "2bdp")])
    fields = slow.fields()
    assert (fields["topology"]["rate"], fields["topology"]["queue"]) == ("5mbit", "2bdp")
    same = checked(("topology.rate", "5mbit"), ("topology.queue", "2bdp"))
    assert slow.fields() == same.fields()
    with pytest.raises(weir.ScenarioError, match=r"topology\.rate=0bit: 0bit is not allowed"):
        checked().at([("topology.rate", "0bit")])
    with pytest.raises(weir.ScenarioError, match="was read without its text"):
        _native.Scenario.from_json(json.dumps(slow.fields())).at([("topology.rate", "1mbit")])


def test_tables_are_read_by_anything_that_knows_arrow() -> None:
    result = checked().run(1)
    names = ["summary", *TABLES[1:]]
    assert result.tables == names
    frame = pl.DataFrame(result.table("flows"))
    table = pa.table(result.table("flows"))
    assert frame["goodput_mbps"].to_list() == table["goodput_mbps"].to_pylist()
    assert 0 < frame["goodput_mbps"][0] < 10
    with pytest.raises(KeyError, match="there is no table 'flow'; there are summary, flows"):
        result.table("flow")


def test_tables_pass_through_json() -> None:
    result = checked().run(1)
    read = tables_of(result.to_json())
    assert set(read) == set(result.tables)
    for name, table in read.items():
        assert table.equals(pl.DataFrame(result.table(name))), name
        assert table.schema == pl.DataFrame(result.table(name)).schema, name
    assert {dtype for table in read.values() for dtype in table.dtypes} == {
        pl.Boolean,
        pl.Float64,
        pl.String,
        pl.UInt32,
        pl.UInt64,
    }


def test_the_same_seed_gives_the_same_tables() -> None:
    noisy = checked(("topology.forward.loss", "1%"))
    frames = [pl.DataFrame(noisy.run(seed).table("samples")) for seed in (1, 1, 2)]
    assert frames[0].equals(frames[1])
    assert not frames[0].equals(frames[2])


def test_other_threads_go_on_during_a_run() -> None:
    long = checked(("topology.rate", "100mbit"), ("measure.duration", "60s"))
    run = threading.Thread(target=long.run, args=(1,))
    run.start()
    turns = 0
    while run.is_alive():
        turns += 1
        time.sleep(0.001)
    # Were the interpreter held, the loop would get one turn when the run is over.
    assert turns > 5


def test_every_file_that_runs_alone_is_there() -> None:
    for name in REAL_TIME:
        assert Path(__file__).with_name(f"{name}.py").is_file(), name
