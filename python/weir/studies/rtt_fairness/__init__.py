"""`rtt-fairness`: two flows of one kind, one of which has the longer way.

How the goodput of a flow depends on its round trip: the exponent a of goodput ∝ RTT^-a, for every
congestion control, at a drop-tail queue and at one that serves flows in turn.
"""

from __future__ import annotations

from weir.studies.contest import ContestStudy
from weir.studies.rtt_fairness import expected, figures
from weir.studies.rtt_fairness.experiment import EXTENTS, cases
from weir.studies.rtt_fairness.findings import findings
from weir.studies.rtt_fairness.measures import study_cells

STUDY = ContestStudy(
    name="rtt-fairness",
    description=(
        "two flows whose round trips differ up to eightfold: who gets what, and the exponent of "
        "it, over a drop-tail queue and over FQ-CoDel"
    ),
    extents=EXTENTS,
    cases=cases,
    cells=study_cells,
    claims=expected.claims,
    findings=findings,
    draw=figures.sections,
)
