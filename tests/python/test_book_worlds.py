"""Study `book` next to a kernel: the tests behind the router in both worlds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from weir.cells.cells import Cells
from weir.cells.protocol import Settings
from weir.running.execution import run_plan
from weir.scenario.source import KERNEL, SIM, VIRTUAL
from weir.studies.book import joins, worlds

TINY = worlds.Extent(1 / 30, 0.4, 1, {"lan-10g": (1 / 6000, 0.01), "wan-10g": (1 / 600, 0.1)})
PLAN = worlds.study_plan(TINY, Settings(world=VIRTUAL))


def test_every_test_is_there_in_both_worlds() -> None:
    pairs = list(zip(PLAN.cases[::2], PLAN.cases[1::2], strict=True))
    assert len(pairs) == 4 * (2 * 3 + 2 * 2 * 3)
    labels = {case.label for case in PLAN.cases}
    for network in ("lan-10g", "wan-10g", "wan-10m", "wan-100m"):
        assert f"3-flow, {network}, bbr, kernel" in labels
        assert f"{network}, 10 KB beside 4, reno, kernel" in labels
    for ours, theirs in pairs:
        assert (ours.world, theirs.world) == (SIM, VIRTUAL)
        assert theirs.label == f"{ours.label}, kernel"
        assert ours.scenario.text == theirs.scenario.text
    assert PLAN.command == "weir study book --world kernel --virtual --size small --seed 1"


def test_real_time_has_no_network_of_10_gbit() -> None:
    for extent in worlds.EXTENTS.values():
        assert len(list(extent.in_world(VIRTUAL).networks())) == 4
        ids = [network.id for network, *_ in extent.in_world(KERNEL).networks()]
        assert ids == ["wan-10m", "wan-100m"]


def test_cells_have_both_worlds_and_pictures_the_same_axes(tmp_path: Path) -> None:
    """The simulator in the kernel's place."""
    plan = replace(PLAN, cases=tuple(replace(case, world=SIM) for case in PLAN.cases))
    results = run_plan(plan, out=tmp_path, show_progress=False)
    cells = worlds.study_cells(results, TINY)
    assert all(cell["ours"] == cell[worlds.KERNEL_COLUMN] for cell in cells)
    assert {cell["table"] for cell in cells} == {joins.TWO, joins.THREE, worlds.FIGURE}
    share = Cells(cells).table(joins.TWO).ours("wan-10m, reno", joins.SHARE)
    assert share.mean is not None
    assert "wan-10m, reno" in worlds.findings(Cells(cells))[0]
    (section,) = worlds.sections(results)
    assert len(section.figures) == 4 * 2 * 3
    assert all(len(figure.runs) == 2 for figure in section.figures)
    assert set(section.figures[0].data["source"]) == {"Weir", "Linux"}
