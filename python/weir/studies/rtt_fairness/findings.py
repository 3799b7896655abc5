"""What curves and exponents say, in sentences made from their numbers."""

from __future__ import annotations

from collections.abc import Iterator

from weir.studies import claims
from weir.studies.cells import Cells
from weir.studies.rtt_fairness.experiment import QUEUES, RATE, RATIOS, SHORT_MS
from weir.studies.rtt_fairness.measures import EXPONENT, table

_MEANING = "0 is fair, 1 as unfair as the ways"
_INDIFFERENT = 0.2
"""Between minus and plus this, a control is said not to care."""


def findings(cells: Cells) -> list[str]:
    """The main ones first."""
    own = cells.table(claims.TABLE).all
    return [
        *(_exponents(cells, queue) for queue in QUEUES),
        *_extremes(cells),
        claims.summary(own, "of the literature"),
        *claims.in_words(own),
        f"Two flows of one kind share {RATE}: one has a round trip of {SHORT_MS} ms without "
        f"queues, the other up to {RATIOS[-1]} times that. The exponent is fitted, seed by seed, "
        "to the round trips that were measured: at a drop-tail queue both flows wait in the same "
        "queue, so that their ratio is smaller than that of the ways.",
    ]


def _exponents(cells: Cells, queue: str) -> str:
    own = cells.table(EXPONENT)
    listed = ", ".join(f"{stack} {own.text(stack, queue)}" for stack in own.rows())
    return f"Exponent a of goodput ∝ RTT^-a over {queue}: {listed}. {_MEANING}."


def _extremes(cells: Cells) -> Iterator[str]:
    for queue in QUEUES:
        own, column = cells.table(table(queue)), str(RATIOS[-1])
        present = [(mean, row) for row in own.rows() if (mean := own.mean(row, column)) is not None]
        if not present:
            continue
        (least, loser), (most, winner) = min(present), max(present)
        yield (
            f"With a way {column} times as long over {queue}, the long flow gets between "
            f"{least:.2f} ({loser}) and {most:.2f} ({winner}) of what the short one gets."
        )
    own = cells.table(EXPONENT)
    for stack in own.rows():
        exponent = own.ours(stack, next(iter(QUEUES)))
        if exponent.hi is not None and exponent.hi < -_INDIFFERENT:
            yield f"The longer way wins among {stack} flows: their exponent is below zero."
