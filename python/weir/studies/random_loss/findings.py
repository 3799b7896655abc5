"""What the curves say, in sentences made from their numbers."""

from __future__ import annotations

from collections.abc import Iterator

from weir.studies import claims
from weir.studies.cells import Cells, digits
from weir.studies.random_loss.experiment import RATE, RTT
from weir.studies.random_loss.laws import CAPACITY_MBPS
from weir.studies.random_loss.measures import GOODPUT, percent_of

_HALF = 0.5
_SHOWN = (0.1, 1.0, 5.0)
"""Loss rates, in percent, at which every control's goodput is put into words."""


def findings(cells: Cells) -> list[str]:
    """The main ones first."""
    own = cells.table(claims.TABLE).all
    goodput = cells.table(GOODPUT)
    return [
        _tolerance(goodput),
        *_at(goodput),
        claims.summary(own, "of the literature"),
        *claims.in_words(own),
        f"One flow over {RATE} and {RTT}, drop-tail of one bandwidth-delay product. Losses are "
        "independent of each other and of the queue; the first quarter of a run is left out.",
    ]


def _tolerance(goodput: Cells) -> str:
    parts = []
    for stack in goodput.rows():
        kept = [
            percent_of(place)
            for place in goodput.columns()
            if (goodput.mean(stack, place) or 0.0) >= _HALF * CAPACITY_MBPS
        ]
        parts.append(f"{stack} {max(kept):g} %" if kept else f"{stack} at none")
    return f"Largest loss rate tried at which half of the link is still used: {', '.join(parts)}."


def _at(goodput: Cells) -> Iterator[str]:
    for place in goodput.columns():
        if percent_of(place) not in _SHOWN:
            continue
        means = {stack: goodput.mean(stack, place) or 0.0 for stack in goodput.rows()}
        ranked = sorted(means, key=lambda stack: -means[stack])
        listed = ", ".join(f"{stack} {digits(means[stack])}" for stack in ranked)
        yield f"Goodput at {place} loss, in Mbit/s: {listed}."
