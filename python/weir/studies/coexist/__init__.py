"""`coexist`: every pair of congestion controls over one bottleneck, shallow to deep.

Who takes what from whom, as a share of the link and as harm (Ware et al. 2019). The network is that
of the coexistence test in BBR's own test suite (nsperf): 50 Mbit/s, 30 ms, one flow of each kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weir.api import carry_out
from weir.report.model import ReportSection
from weir.results import Results
from weir.studies import Cell, Settings, StudyResult
from weir.studies.cells import Cells
from weir.studies.coexist import expected, pictures
from weir.studies.coexist.experiment import EXTENTS, study_plan
from weir.studies.coexist.findings import findings
from weir.studies.coexist.measures import study_cells


class Coexist:
    """The study."""

    name = "coexist"
    description = (
        "every pair of congestion controls over buffers of half, one and four bandwidth-delay "
        "products: shares, harm and queueing delay"
    )

    def run(self, settings: Settings) -> StudyResult:
        """Runs every pair, and every control alone."""
        extent = replace(EXTENTS[settings.size], seed=settings.seed)
        if settings.repeat is not None:
            extent = replace(extent, repeat=settings.repeat)
        results = carry_out(study_plan(extent, settings.size), **settings.how)
        measured = study_cells(results, extent.stacks)
        rows = [*expected.claims(Cells(measured)), *measured]
        return StudyResult(rows, findings(Cells(rows)), results)

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """The heat maps."""
        return pictures.sections(results, Cells(rows))


STUDY = Coexist()
