"""`steps`: links that change or fail under way, and how fast each congestion control follows.

Rate and delay steps, blackouts and the bad links that implementers of QUIC test with: black hole,
drop and back, low and up, a fading and a suspended wireless link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weir.api import carry_out
from weir.report.model import ReportSection
from weir.results import Results
from weir.studies import Cell, Settings, StudyResult
from weir.studies.cells import Cells
from weir.studies.steps import expected, pictures
from weir.studies.steps.experiment import EXTENTS, study_plan
from weir.studies.steps.findings import findings
from weir.studies.steps.measures import study_cells


class Steps:
    """The study."""

    name = "steps"
    description = (
        "rate and delay steps, blackouts and bad links: how fast each congestion control follows, "
        "what it uses and how long its queue gets"
    )

    def run(self, settings: Settings) -> StudyResult:
        """Runs every control over every link."""
        extent = replace(EXTENTS[settings.size], seed=settings.seed)
        if settings.repeat is not None:
            extent = replace(extent, repeat=settings.repeat)
        results = carry_out(study_plan(extent, settings.size), **settings.how)
        measured = study_cells(results, extent.stacks)
        rows = [*expected.claims(Cells(measured)), *measured]
        return StudyResult(rows, findings(Cells(rows)), results)

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """Every link over time, and the tables."""
        return pictures.sections(results, Cells(rows))


STUDY = Steps()
