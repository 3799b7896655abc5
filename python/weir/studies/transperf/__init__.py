"""`transperf`: the scores of transperf's tests as pass and fail, and nsperf's five tests.

transperf (google/transperf) checks a run against required scores from 0 to 100; nsperf is the test
suite that comes with BBR (google/bbr, gtests/net/tcp/bbr/nsperf), which prints figures to look at.
"""

from __future__ import annotations

from weir.studies.contest import ContestStudy
from weir.studies.transperf import figures
from weir.studies.transperf.experiment import EXTENTS, cases
from weir.studies.transperf.findings import findings
from weir.studies.transperf.measures import study_cells

STUDY = ContestStudy(
    name="transperf",
    description=(
        "transperf's scores of goodput, RTT, losses and fairness as pass and fail, and the five "
        "tests of nsperf, at a tenth of their rate in the small size"
    ),
    extents=EXTENTS,
    cases=cases,
    cells=study_cells,
    claims=lambda _: (),
    findings=findings,
    draw=figures.sections,
)
