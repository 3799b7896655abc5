"""Traces of Linux's TCP behind our own router, recorded in guests by `weir validate --record`."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.recordings import judge, truth
from weir.recordings.record import CASES
from weir.validation import validate

TRUTH = Path(__file__).parents[1] / "truth"
OURS = {reference.name: reference for reference in truth.read(TRUTH / "virtual").references}
NETEM = {reference.name: reference for reference in truth.read(TRUTH).references}

JUDGED = judge.RECORDED["deterministic"]


def test_every_case_of_the_command_is_there() -> None:
    assert set(OURS) == set(CASES)
    for name, reference in OURS.items():
        assert dict(reference.params) == dict(CASES[name])
        assert reference.series is not None
        assert reference.series.height >= 290


@pytest.mark.parametrize("name", sorted(OURS))
def test_behind_our_router_linux_does_what_it_does_behind_its_own(name: str) -> None:
    (ours,), (theirs,) = OURS[name].recordings[0], NETEM[name].recordings[0]
    looked = 0
    for metric, tolerance in JUDGED.items():
        mine, reference = ours[metric], theirs[metric]
        assert (mine is None) == (reference is None), metric
        if mine is not None and reference is not None:
            assert tolerance.holds(mine, reference), (metric, mine, reference)
            looked += 1
    assert looked >= 3


def test_the_simulator_does_what_linux_does_behind_our_router(tmp_path: Path) -> None:
    drawn = "10m-q34-bbr"
    cases = sorted(OURS.keys() - {drawn})
    found = validate(TRUTH / "virtual", cases=cases, out=tmp_path, show_progress=False)
    assert not [row for row in found.rows if row["holds"] is False]
    assert found.score["all"]["judged"] >= 4 * len(cases)
