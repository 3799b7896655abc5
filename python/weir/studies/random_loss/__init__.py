"""`random-loss`: goodput of every congestion control against independent random losses.

The network of figure 8 of the BBR paper (Cardwell et al., ACM Queue 14(5), 2016): 100 Mbit/s,
100 ms. The laws of Reno and CUBIC at a given loss rate stand beside what was measured.
"""

from __future__ import annotations

from collections.abc import Sequence

from weir.api import carry_out
from weir.report.model import ReportSection
from weir.results import Results
from weir.studies import Cell, Settings, StudyResult
from weir.studies.cells import Cells
from weir.studies.random_loss import expected, pictures
from weir.studies.random_loss.experiment import EXTENTS, study_plan
from weir.studies.random_loss.findings import findings
from weir.studies.random_loss.measures import study_cells


class RandomLoss:
    """The study."""

    name = "random-loss"
    description = (
        "100 Mbit/s and 100 ms with random losses from 0.001 to 50 %: goodput of every congestion "
        "control beside the laws of Reno and CUBIC"
    )

    def run(self, settings: Settings) -> StudyResult:
        """Runs every control at every loss rate."""
        extent = EXTENTS[settings.size].chosen(settings.repeat, settings.seed)
        results = carry_out(study_plan(extent, settings.size), **settings.how)
        measured = study_cells(results, extent)
        rows = [*expected.claims(Cells(measured)), *measured]
        return StudyResult(rows, findings(Cells(rows)), results)

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """The curves."""
        return pictures.sections(results, Cells(rows))


STUDY = RandomLoss()
