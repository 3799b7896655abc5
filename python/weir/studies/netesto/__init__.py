"""`netesto`: the tests of the Network Test Toolkit, with which the chapter of `book` was measured.

Its own timings, request mixes and buffers. Netesto publishes scripts, not results; what its author
and its scripts say of them stands beside ours (`words`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weir.api import run_plan
from weir.results import Results
from weir.studies import Cell, Settings, StudyResult
from weir.studies.cells import Cells
from weir.studies.netesto import measures, summary
from weir.studies.netesto.experiment import EXTENTS, Extent, study_plan

if TYPE_CHECKING:
    from weir.report.model import ReportSection


class Netesto:
    """The study."""

    name = "netesto"
    description = (
        "Netesto's scripts: staggered streams over router buffers of 1/2 to 8 BDP, 1 to 32 "
        "instances of requests and streams per client, sizes side by side"
    )

    def run(self, settings: Settings) -> StudyResult:
        """Runs every script."""
        extent = EXTENTS[settings.size]
        plan = study_plan(extent, settings.size, settings.repeat, settings.seed)
        results = run_plan(plan, **settings.how)
        rows = study_cells(results, extent)
        return StudyResult(rows, summary.findings(Cells(rows), extent), results)

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """Each quantity over what its test varies."""
        from weir.studies.netesto import figures  # see `book`

        return figures.sections(results, Cells(rows))


def study_cells(results: Results, extent: Extent) -> list[Cell]:
    """Every cell; the verdicts on what is expected come first."""
    rows = [
        *measures.stream_cells(results, extent),
        *measures.rate_cells(results, extent),
        *measures.size_cells(results, extent),
    ]
    sensitivity = measures.start_sensitivity(results, extent)
    return [*summary.expectations(Cells(rows), extent, sensitivity), *rows]


STUDY = Netesto()
