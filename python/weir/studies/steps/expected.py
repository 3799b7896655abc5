"""What the literature expects of steps, and whether ours agree."""

from __future__ import annotations

from collections.abc import Iterator

from weir.stats import Estimate
from weir.studies import Cell
from weir.studies.cells import Cells
from weir.studies.claims import claim, ratio
from weir.studies.steps.measures import SETTLED, USED

_AFTER_BLACKOUT_S = 2.5
"""A timer that doubles fires at most as late after a blackout as the blackout was long; half a
second more for the first round trips and the width of a bin."""

_BBR_FORGETS_S = 10.0


def claims(cells: Cells) -> Iterator[Cell]:
    """Each with the number that tests it."""
    settled, used = cells.table(SETTLED), cells.table(USED)
    for stack in settled.rows():
        wait = settled.ours(stack, "black hole: after 2 s of nothing")
        if wait.n:
            yield claim(
                f"{stack} sends again within the length of a blackout (RFC 6298 §5.5: the timer "
                "doubles)",
                "seconds from the end of the black hole to the full rate",
                wait,
                wait.mean is not None and wait.mean <= _AFTER_BLACKOUT_S,
            )
    yield from _vegas(used)
    yield from _bbr(settled)


def _vegas(used: Cells) -> Iterator[Cell]:
    """A longer route looks like a queue to it."""
    for other in ("reno", "cubic"):
        less = ratio(used.ours("vegas", "delay steps"), used.ours(other, "delay steps"))
        if less.mean is not None:
            yield claim(
                f"Vegas takes a longer route for a queue and uses less of it than {other} "
                "(La, Walrand and Anantharam 1999)",
                f"used by vegas over used by {other}",
                less,
                less.mean < 1,
            )


def _bbr(settled: Cells) -> Iterator[Cell]:
    """Its window is made of an RTT that is the least of the last ten seconds."""
    wait = settled.ours("bbr", "delay steps: 100 ms longer")
    if wait.n:
        holds = None if wait.mean is None else wait.mean <= _BBR_FORGETS_S + 1
        yield claim(
            "BBR has found a longer route's RTT after ten seconds (Cardwell et al. 2016: the "
            "minimum of the last 10 s)",
            "seconds to the full rate",
            wait if wait.mean is not None else Estimate(None, None, None, wait.n),
            holds,
        )
