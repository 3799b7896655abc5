"""What happens on bad links, in sentences made from the numbers."""

from __future__ import annotations

from collections.abc import Iterator

from weir.studies import claims
from weir.studies.cells import Cells, digits
from weir.studies.steps.links import LINKS
from weir.studies.steps.measures import DELAY, SETTLED, USED


def findings(cells: Cells) -> list[str]:
    """The main ones first."""
    own = cells.table(claims.TABLE).all
    return [
        *_links(cells),
        claims.summary(own, "of the literature"),
        *claims.in_words(own),
        *_events(cells.table(SETTLED)),
        "One flow at a time. The first two seconds of a run are left out of what is used. A flow "
        "has settled when every half second is within 15 % of the new rate, for two seconds.",
    ]


def _links(cells: Cells) -> Iterator[str]:
    """The best and the worst on each link."""
    used, delay = cells.table(USED), cells.table(DELAY)
    for link in LINKS:
        parts = {
            row: mean for row in used.rows() if (mean := used.mean(row, link.name)) is not None
        }
        if not parts:
            continue
        best, worst = max(parts, key=lambda r: parts[r]), min(parts, key=lambda r: parts[r])
        yield (
            f"{link.name.capitalize()}: {best} uses the most, {parts[best]:.0%} of the capacity, "
            f"with a P95 queueing delay of {_ms(delay, best, link.name)}; {worst} the least, "
            f"{parts[worst]:.0%}, with {_ms(delay, worst, link.name)}."
        )


def _events(settled: Cells) -> Iterator[str]:
    """How long each takes after each step."""
    for column in settled.columns():
        texts = [
            f"{row} {settled.text(row, column)} s"
            if settled.mean(row, column) is not None
            else f"{row} {settled.note(row, column)}"
            for row in settled.rows()
        ]
        yield f"Time to settle, {column}: {'; '.join(texts)}."


def _ms(delay: Cells, row: str, column: str) -> str:
    mean = delay.mean(row, column)
    return "–" if mean is None else f"{digits(mean)} ms"
