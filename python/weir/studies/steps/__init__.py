"""`steps`: links that change or fail during a run, and how fast each congestion control follows.

Rate and delay steps, blackouts and the bad links that implementers of QUIC test with: black hole,
drop and back, low and up, a fading and a suspended wireless link.
"""

from __future__ import annotations

from weir.studies.contest import ContestStudy
from weir.studies.steps import expected, figures
from weir.studies.steps.experiment import EXTENTS, cases
from weir.studies.steps.findings import findings
from weir.studies.steps.measures import study_cells

STUDY = ContestStudy(
    name="steps",
    description=(
        "rate and delay steps, blackouts and bad links: how fast each congestion control follows, "
        "what it uses and how long its queue gets"
    ),
    extents=EXTENTS,
    cases=cases,
    cells=study_cells,
    claims=expected.claims,
    findings=findings,
    draw=figures.sections,
)
