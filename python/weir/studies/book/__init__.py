"""`book`: the tests of "TCP Congestion Control: A Systems Approach", §3.4, repeated.

Its three networks, its 2-flow and 3-flow tests, requests beside streams, and the buffer of a
router. The chapter shows pictures without numbers and does not name its algorithms; what it says
of each picture stands beside ours (`expected`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weir.api import run_plan
from weir.results import Results
from weir.scenario import KERNEL, SIM, VIRTUAL
from weir.studies import Cell, Settings, StudyResult
from weir.studies.book import joins, mix, rpc, series, worlds
from weir.studies.book.expected import expectations
from weir.studies.book.experiment import EXTENTS, Extent, staggered_tests, study_plan
from weir.studies.book.findings import findings
from weir.studies.cells import Cells

if TYPE_CHECKING:
    from weir.report.model import ReportSection


class Book:
    """The study."""

    name = "book"
    description = (
        "the experiments of the systems-approach book: staggered flows, requests beside streams "
        "and router buffers, from 10 Mbit/s to 10 Gbit/s"
    )

    worlds = (SIM, KERNEL, VIRTUAL)

    def run(self, settings: Settings) -> StudyResult:
        """Runs every test and makes the data of the chapter's figures.

        Beside a kernel these are the tests behind the router, in both worlds.
        """
        if settings.world != SIM:
            return worlds.run(settings)
        extent = EXTENTS[settings.size].repeated(settings.repeat)
        plan = study_plan(extent, settings.size, settings.repeat, settings.seed)
        results = run_plan(plan, **settings.how)
        rows = study_cells(results, extent)
        return StudyResult(rows, findings(Cells(rows), extent), results)

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """The chapter's figures with our data; beside a kernel's, its tests in both worlds."""
        if any(worlds.KERNEL_COLUMN in row for row in rows):
            return worlds.sections(results)
        from weir.studies.book import figures  # not needed to list studies

        return figures.sections(results, Cells(rows))


def study_cells(results: Results, extent: Extent) -> list[Cell]:
    """Every cell; the verdicts on what the chapter expects come first."""
    tests = list(staggered_tests(extent))
    rows = list(joins.join_cells(results, tests))
    unfair = joins.most_uneven(tests, rows)
    rows += series.series_cells(results, tests)
    rows += series.goodput_cells(results, unfair, f"{series.UNFAIR} {unfair.network.id}")
    rows += rpc.rpc_cells(results, extent)
    rows += rpc.latency_cells(results, extent)
    rows += mix.mix_cells(results, extent)
    rows += rpc.buffer_cells(results, extent)
    rows += rpc.rivalry_cells(results)
    return [*expectations(Cells(rows), extent), *rows]


STUDY = Book()
