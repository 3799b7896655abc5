"""What the literature expects of the exponents, and whether ours agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weir.studies import Cell
from weir.studies.cells import Cells
from weir.studies.claims import below, claim, ratio
from weir.studies.rtt_fairness.experiment import QUEUES
from weir.studies.rtt_fairness.measures import EXPONENT


@dataclass(frozen=True, slots=True)
class Expectation:
    """Between which bounds the exponent of a control over a queue lies."""

    stack: str
    queue: str
    low: float
    high: float
    says: str


_DROP_TAIL, _FAIR = QUEUES

_MOST_IS_TAKEN = 0.25
"""A ratio of exponents is below this if a queue takes most of the dependence."""

EXPECTATIONS = (
    Expectation(
        "reno",
        _DROP_TAIL,
        1.0,
        2.0,
        "Reno's exponent at a drop-tail queue lies between 1 and 2 (Lakshman and Madhow 1997)",
    ),
    Expectation(
        "cubic",
        _DROP_TAIL,
        0.0,
        2.0,
        "CUBIC cares about the RTT no more than Reno at its worst (RFC 9438 §5.2)",
    ),
    Expectation(
        "bbr",
        _DROP_TAIL,
        -10.0,
        0.0,
        "BBR prefers the longer way: a negative exponent (Hock et al. 2017; Ma et al. 2017)",
    ),
)


def claims(cells: Cells) -> Iterator[Cell]:
    """Those whose control was run."""
    own = cells.table(EXPONENT)
    for expectation in EXPECTATIONS:
        ours = own.ours(expectation.stack, expectation.queue)
        if ours.mean is None:
            continue
        holds = expectation.low <= ours.mean <= expectation.high
        yield claim(expectation.says, f"exponent, {expectation.queue}", ours, holds)
    for stack in ("reno", "cubic"):
        left = ratio(own.ours(stack, _FAIR), own.ours(stack, _DROP_TAIL))
        if left.mean is not None:
            yield claim(
                f"A queue that serves flows in turn takes most of its dependence from {stack} "
                "(RFC 8290 §1: flows are isolated from each other)",
                f"exponent over {_FAIR}, as a part of that over {_DROP_TAIL}",
                left,
                below(left, _MOST_IS_TAKEN),
            )
