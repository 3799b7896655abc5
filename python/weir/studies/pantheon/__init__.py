"""`pantheon`: throughput against delay over the 18 emulated paths of the Pantheon.

Yan, Ma, Hill, Raghavan, Wahby, Levis and Winstein, "Pantheon: the training ground for Internet
congestion-control research", USENIX ATC 2018. Six paths are calibrated to real ones, twelve are
scenarios of Google's: policers, aggregated acknowledgements, shallow buffers.
"""

from __future__ import annotations

from weir.studies.contest import ContestStudy
from weir.studies.pantheon import expected, figures
from weir.studies.pantheon.experiment import EXTENTS, cases
from weir.studies.pantheon.findings import findings
from weir.studies.pantheon.measures import study_cells

STUDY = ContestStudy(
    name="pantheon",
    description=(
        "the 18 emulated paths of the Pantheon of Congestion Control, with one flow and three: "
        "throughput against P95 one-way delay"
    ),
    extents=EXTENTS,
    cases=cases,
    cells=study_cells,
    claims=expected.claims,
    findings=findings,
    draw=figures.sections,
)
