"""The scenarios that come with Weir, by name (the Rust tests run each of them)."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.running.runner import execute
from weir.scenario.plans import scenario_plan
from weir.scenario.source import library, read

NAMES = library()


def test_there_is_a_library() -> None:
    assert len(NAMES) >= 10


@pytest.mark.parametrize("name", NAMES)
def test_every_point_of_a_scenario_is_valid(name: str) -> None:
    plan = scenario_plan(read(name), {}, repeat=1)
    assert plan.name == name
    assert plan.command == f"weir run {name} --set measure.repeat=1"
    assert all(case.scenario.description for case in plan.cases)


def test_a_trace_is_found_beside_its_scenario() -> None:
    source = read("cellular-trace", (("measure.duration", "1s"), ("measure.warmup", "0s")))
    first = scenario_plan(source, {}).runs[0]
    assert execute(first.case.scenario, first.seed)["flows"]["delivered_bytes"][0] > 0


def test_the_sweep_of_1000_runs_has_them_and_is_where_the_documents_say() -> None:
    path = Path(__file__).parents[2] / "scenarios" / "sweep-1000.toml"
    assert len(scenario_plan(read(path), {}).runs) == 1000
