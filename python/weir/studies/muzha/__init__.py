"""`muzha`: TCP Muzha beside what it was compared with, on its authors' radio networks.

Chains, crosses, staggered flows, numbers of levels, the grid of increases and decreases, random
loss, moving nodes, and how much of the answer depends on what was never published.
"""

from __future__ import annotations

from weir.studies.contest import ContestStudy
from weir.studies.muzha import expected, figures
from weir.studies.muzha.experiment import EXTENTS
from weir.studies.muzha.findings import findings
from weir.studies.muzha.measures import cases, study_cells

STUDY = ContestStudy(
    name="muzha",
    description=(
        "does TCP Muzha carry 5 to 10 % more than NewReno over 802.11 hops, with fewer "
        "retransmissions and fairly, and on what does that depend"
    ),
    extents=EXTENTS,
    cases=cases,
    cells=study_cells,
    claims=expected.claims,
    findings=findings,
    draw=figures.sections,
)
