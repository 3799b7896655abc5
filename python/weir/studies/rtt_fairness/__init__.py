"""`rtt-fairness`: two flows of one kind, one of which has the longer way.

How the goodput of a flow depends on its round trip: the exponent a of goodput ∝ RTT^-a, for every
congestion control, at a drop-tail queue and at one that serves flows in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weir.api import carry_out
from weir.report.model import ReportSection
from weir.results import Results
from weir.studies import Cell, Settings, StudyResult
from weir.studies.cells import Cells
from weir.studies.rtt_fairness import expected, pictures
from weir.studies.rtt_fairness.experiment import EXTENTS, study_plan
from weir.studies.rtt_fairness.findings import findings
from weir.studies.rtt_fairness.measures import study_cells


class RttFairness:
    """The study."""

    name = "rtt-fairness"
    description = (
        "two flows whose round trips differ up to eightfold: who gets what, and the exponent of "
        "it, over a drop-tail queue and over FQ-CoDel"
    )

    def run(self, settings: Settings) -> StudyResult:
        """Runs every control at every ratio over both queues."""
        extent = replace(EXTENTS[settings.size], seed=settings.seed)
        if settings.repeat is not None:
            extent = replace(extent, repeat=settings.repeat)
        results = carry_out(study_plan(extent, settings.size), **settings.how)
        measured = study_cells(results, extent.stacks)
        rows = [*expected.claims(Cells(measured)), *measured]
        return StudyResult(rows, findings(Cells(rows)), results)

    def sections(self, results: Results, rows: Sequence[Cell]) -> Sequence[ReportSection]:
        """The curves and the exponents."""
        return pictures.sections(results, Cells(rows))


STUDY = RttFairness()
