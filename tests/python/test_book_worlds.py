"""Study `book` beside a kernel: the tests behind the router in both worlds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from weir.api import carry_out
from weir.scenario import SIM, VIRTUAL
from weir.studies import Settings
from weir.studies.book import joins, worlds
from weir.studies.cells import Cells

TINY = worlds.Extent(1 / 30, 0.4, 1)
PLAN = worlds.study_plan(TINY, Settings(world=VIRTUAL))


def test_every_test_is_there_in_both_worlds() -> None:
    pairs = list(zip(PLAN.cases[::2], PLAN.cases[1::2], strict=True))
    assert len(pairs) == 2 * 2 * 3 + 2 * 2 * 2 * 3
    for ours, theirs in pairs:
        assert (ours.world, theirs.world) == (SIM, VIRTUAL)
        assert theirs.label == f"{ours.label}, kernel"
        assert ours.scenario.text == theirs.scenario.text
    assert PLAN.command == "weir study book --world kernel --virtual --size small --seed 1"


def test_cells_have_both_worlds_and_pictures_the_same_axes(tmp_path: Path) -> None:
    """The simulator in the kernel's place."""
    plan = replace(PLAN, cases=tuple(replace(case, world=SIM) for case in PLAN.cases))
    results = carry_out(plan, out=tmp_path, show_progress=False)
    cells = worlds.study_cells(results, TINY)
    assert all(cell["ours"] == cell[worlds.KERNEL_COLUMN] for cell in cells)
    assert {cell["table"] for cell in cells} == {joins.TWO, joins.THREE, worlds.FIGURE}
    share = Cells(cells).table(joins.TWO).ours("wan-10m, reno", joins.SHARE)
    assert share.mean is not None
    assert "wan-10m, reno" in worlds.findings(Cells(cells))[0]
    (section,) = worlds.sections(results)
    assert len(section.figures) == 2 * 2 * 3
    assert all(len(figure.runs) == 2 for figure in section.figures)
    assert set(section.figures[0].data["source"]) == {"Weir", "Linux"}
