"""`ccwg`: bundles of scenario and envelopes, for who implements or standardises congestion control.

The four cases of ns-3's tcp-validation, the test cases of the BBR draft's appendix, and the
comparisons with CUBIC that RFC 9743 asks of a new algorithm. Each bundle says what runs, what is
looked at and between which bounds it must lie; the study prints pass or fail per envelope.
"""

from __future__ import annotations

from weir.studies.ccwg import figures
from weir.studies.ccwg.experiment import EXTENTS, cases
from weir.studies.ccwg.findings import findings
from weir.studies.ccwg.measures import study_cells
from weir.studies.contest import ContestStudy

STUDY = ContestStudy(
    name="ccwg",
    description=(
        "ns-3's four validation cases, the test cases of the BBR draft and RFC 9743's comparisons "
        "with CUBIC: pass or fail per envelope"
    ),
    extents=EXTENTS,
    cases=cases,
    cells=study_cells,
    claims=lambda _: (),
    findings=findings,
    draw=figures.sections,
)
