"""`random-loss`: goodput of every congestion control against independent random losses.

The network of figure 8 of the BBR paper (Cardwell et al., ACM Queue 14(5), 2016): 100 Mbit/s,
100 ms. The laws of Reno and CUBIC at a given loss rate stand beside what was measured.
"""

from __future__ import annotations

from weir.studies.contest import ContestStudy
from weir.studies.random_loss import expected, figures
from weir.studies.random_loss.experiment import EXTENTS, cases
from weir.studies.random_loss.findings import findings
from weir.studies.random_loss.measures import study_cells

STUDY = ContestStudy(
    name="random-loss",
    description=(
        "100 Mbit/s and 100 ms with random losses from 0.001 to 50 %: goodput of every congestion "
        "control beside the laws of Reno and CUBIC"
    ),
    extents=EXTENTS,
    cases=cases,
    cells=study_cells,
    claims=expected.claims,
    findings=findings,
    draw=figures.sections,
)
