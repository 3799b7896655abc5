"""`book`: the tests of "TCP Congestion Control: A Systems Approach", §3.4, repeated.

Its three networks, its 2-flow and 3-flow tests, requests beside streams, and the buffer of a
router. The chapter shows pictures without numbers and does not name its algorithms; what it says
of each picture is in the claims of the description.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from weir.cells.protocol import Cell, Settings, StudyResult
from weir.cells.texts import Scope
from weir.results.results import Results
from weir.scenario.source import KERNEL, SIM, VIRTUAL
from weir.scenario.sweep import Plan
from weir.studies.book import joins, mix, rpc, series, worlds
from weir.studies.book.experiment import EXTENTS, staggered_tests, study_plan
from weir.studies.described import DescribedStudy

if TYPE_CHECKING:
    from weir.report.model import ReportSection


class Book(DescribedStudy):
    """The study: cases and measures in Python, the rest as described."""

    worlds = (SIM, KERNEL, VIRTUAL)

    def run(self, settings: Settings) -> StudyResult:
        """Runs every test; beside a kernel those behind the router, in both worlds."""
        return super().run(settings) if settings.world == SIM else worlds.run(settings)

    def scope(self, settings: Settings) -> dict[str, Any]:
        """The names of the description, and what a size has."""
        return {**self.constants, "extent": EXTENTS[settings.size].repeated(settings.repeat)}

    def plan(self, settings: Settings) -> Plan:
        """Every run."""
        extent = self.scope(settings)["extent"]
        return study_plan(extent, settings.size, settings.repeat, settings.seed)

    def rows(self, results: Results, scope: Scope) -> list[Cell]:
        """Every cell; the verdicts on what the chapter expects come first."""
        extent = scope["extent"]
        tests = list(staggered_tests(extent))
        rows = list(joins.join_cells(results, tests))
        settled = [test for test in tests if extent.is_long_enough(test.network.id)]
        unfair = joins.most_uneven(settled, rows)
        rows += series.series_cells(results, tests)
        rows += series.goodput_cells(results, unfair, f"{series.UNFAIR} {unfair.network.id}")
        rows += rpc.rpc_cells(results, extent)
        rows += rpc.latency_cells(results, extent)
        rows += rpc.far_cells(results, extent)
        rows += mix.mix_cells(results, extent)
        rows += rpc.buffer_cells(results, extent)
        rows += rpc.rivalry_cells(results)
        return [*self.claims(rows, scope), *rows]

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """The chapter's figures with our data; beside a kernel's, its tests in both worlds."""
        if any(worlds.KERNEL_COLUMN in row for row in rows):
            return worlds.sections(results)
        return super().sections(results, rows)


STUDY = Book(files(__name__), __name__)
