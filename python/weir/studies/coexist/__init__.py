"""`coexist`: every pair of congestion controls over one bottleneck, shallow to deep.

Who takes what from whom, as a share of the link and as harm (Ware et al. 2019). The network is that
of the coexistence test in BBR's own test suite (nsperf): 50 Mbit/s, 30 ms, one flow of each kind.
"""

from __future__ import annotations

from weir.studies.coexist import expected, figures
from weir.studies.coexist.experiment import EXTENTS, cases
from weir.studies.coexist.findings import findings
from weir.studies.coexist.measures import study_cells
from weir.studies.contest import ContestStudy

STUDY = ContestStudy(
    name="coexist",
    description=(
        "every pair of congestion controls over buffers of half, one and four bandwidth-delay "
        "products: shares, harm and queueing delay"
    ),
    extents=EXTENTS,
    cases=cases,
    cells=study_cells,
    claims=expected.claims,
    findings=findings,
    draw=figures.sections,
)
