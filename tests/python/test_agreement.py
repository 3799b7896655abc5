"""What a verb says of scenarios whose kind agrees less often with Linux."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from conftest import Invoke

import weir
from weir.api.reports import write
from weir.results.results import Results
from weir.scenario.source import SIM
from weir.validation import agreement, sampled
from weir.validation.kinds import KINDS

LOW = {"window": {"rows": 24, "held": 22}, "reordering": {"rows": 24, "held": 24}}


def fields(number: int) -> dict[str, Any]:
    """The scenario of a random path, as results have it."""
    scene = [*sampled.scenes(number + 1, 7)][number]
    scenario = scene.source.in_world(SIM).at({})
    return scenario.fields


@pytest.mark.parametrize("number", range(2 * len(KINDS)))
def test_a_random_path_is_of_the_kind_that_it_was_drawn_for(number: int) -> None:
    kind = [*KINDS][number % len(KINDS)]
    assert kind in agreement.kinds_of(fields(number))


def test_kinds_below_the_goal_are_named_once_and_others_not() -> None:
    names = [*KINDS]
    scenarios = [fields(names.index(kind)) for kind in ("window", "window", "reordering")]
    cases = [{"world": SIM, "scenario": scenario} for scenario in scenarios]
    (said,) = agreement.cautions(cast("Results", SimpleNamespace(cases=cases)), LOW)
    assert said.startswith("On random paths of kind window, 22 of 24 values are Linux's")
    cases[0]["world"] = "kernel"
    assert agreement.cautions(cast("Results", SimpleNamespace(cases=cases)), LOW) == []


def test_a_stack_that_is_not_linuxs_is_of_no_kind() -> None:
    other = fields([*KINDS].index("window"))
    other["flow"][0]["stack"] = "newreno/reno"
    assert [*agreement.kinds_of(other)] == []


def test_a_run_says_that_its_kind_is_below_the_goal(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "agreement.json"
    file.write_text(json.dumps(LOW), encoding="utf-8")
    monkeypatch.setattr(agreement, "FILE", file)
    agreement.measured.cache_clear()
    try:
        short = ("--duration", "1s", "--repeat", "1", "--no-report")
        small = ("--set", "flow.*.recv_buffer=20kb")
        for more, is_said in ((small, True), ((), False), ((*small, "--quiet"), False)):
            result = invoke("compare", "reno", "cubic", *short, *more)
            assert result.exit_code == 0, result.stderr
            said = result.stderr.replace("\n", " ")
            assert ("22 of 24 values are Linux's" in said) is is_said
            (manifest,) = tmp_path.rglob("manifest.json")
            page = write(weir.load(manifest.parent))
            in_page = "22 of 24 values are Linux" in page.read_text(encoding="utf-8")
            assert in_page is ("--set" in more)
            shutil.rmtree(page.parent)
    finally:
        agreement.measured.cache_clear()


def test_kinds_that_were_not_measured_again_stay() -> None:
    again = [{"kind": "window", "rows": 12, "held": 12}, {"kind": "all", "rows": 12, "held": 12}]
    assert agreement.joined(LOW, again) == {**LOW, "window": {"rows": 12, "held": 12}}


def test_the_file_has_every_kind() -> None:
    assert set(agreement.measured()) == set(KINDS)
