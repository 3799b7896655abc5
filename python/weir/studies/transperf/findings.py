"""Who passes what, in sentences made from the numbers."""

from __future__ import annotations

from collections.abc import Iterator

from weir.studies import envelopes
from weir.studies.cells import Cells
from weir.studies.transperf.measures import ASKED, SCORES, nsperf_table, scores_table
from weir.studies.transperf.scored import TESTS


def findings(cells: Cells) -> list[str]:
    """The main ones first."""
    scored = [found for found in cells.all if str(found["table"]).startswith(SCORES)]
    failed = [found for found in scored if envelopes.verdict(found) != envelopes.PASS]
    return [
        envelopes.summary(scored, "All scores of transperf"),
        *_tests(cells),
        *_nsperf(cells),
        *(envelopes.in_words(found) for found in failed),
        "A score must be reached in every run. RTT, losses and locking on are of the flow that "
        "does worst, as in transperf; it asks them of BBR only, here all are tested. Goodput "
        "counts application bytes.",
    ]


def _tests(cells: Cells) -> Iterator[str]:
    """Which controls pass a whole test."""
    for test in TESTS:
        own = cells.table(scores_table(test))
        if not own.all:
            continue
        passed = [
            stack
            for stack in own.rows()
            if all(found["holds"] is True for found in own.all if found["row"] == stack)
        ]
        which = ", ".join(passed) if passed else "none"
        yield f"Transperf's test “{test.name}”, passed: {which} (of {', '.join(own.rows())})."


def _nsperf(cells: Cells) -> Iterator[str]:
    """The ends of what each test varies."""
    for test, what, unit, *_ in ASKED:
        own = cells.table(nsperf_table(test, what))
        columns = own.columns()
        if not columns:
            continue
        ends = [columns[0], columns[-1]]
        texts = [
            f"{stack} {' and '.join(own.text(stack, column) for column in ends)}"
            for stack in own.rows()
        ]
        yield f"Nsperf's {test}, {what} ({unit}) at {ends[0]} and {ends[1]}: {'; '.join(texts)}."
