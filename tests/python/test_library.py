"""Every scenario that comes with Weir is valid at every point and runs."""

from __future__ import annotations

import pytest

from weir.api import scenario_plan
from weir.runner import execute
from weir.scenario import library, read

NAMES = library()


def test_there_is_a_library() -> None:
    assert len(NAMES) >= 10


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_is_named_as_its_file_and_runs(name: str) -> None:
    plan = scenario_plan(read(name), {}, repeat=1)
    assert plan.name == name
    assert plan.cases[0].scenario.description
    first = plan.runs[0]
    tables = execute(first.case.scenario.text, first.seed)
    assert tables["flows"]["sent_segments"].sum() > 0
