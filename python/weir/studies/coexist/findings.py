"""What the heat maps say, in sentences made from their numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator

from weir.stats import Estimate
from weir.studies import claims
from weir.studies.cells import Cells, digits
from weir.studies.coexist.experiment import BUFFERS, RATE, RTT, buffer_name
from weir.studies.coexist.measures import DELAY, HARM, SHARE, table

_SELF_HARM = 0.5
"""Two equals on one link cost each other half."""


def findings(cells: Cells) -> list[str]:
    """The main ones first."""
    own = cells.table(claims.TABLE).all
    return [
        *_reversal(cells),
        *(_ranking(cells, buffer) for buffer in BUFFERS),
        *_worst(cells),
        claims.summary(own, "of the literature"),
        *claims.in_words(own),
        *(_delays(cells, buffer) for buffer in BUFFERS),
        f"Every contest is one flow of each kind over {RATE} and {RTT}, drop-tail. Each starts at "
        "a random time within two seconds, so either may come first; the first quarter of a run is "
        "left out. With more flows, other rates or a queue that marks the shares differ.",
    ]


def _reversal(cells: Cells) -> Iterator[str]:
    shares = {buffer: cells.table(table(SHARE, buffer)) for buffer in BUFFERS}
    if any(own.mean("bbr", "cubic") is None for own in shares.values()):
        return
    parts = [f"{own.text('bbr', 'cubic')} at {buffer_name(b)}" for b, own in shares.items()]
    shallow, deep = (
        shares[BUFFERS[0]].ours("bbr", "cubic"),
        shares[BUFFERS[-1]].ours("bbr", "cubic"),
    )
    yield f"{_verdict(shallow, deep)}: BBR's share beside CUBIC is {', '.join(parts)}."


def _verdict(shallow: Estimate, deep: Estimate) -> str:
    """Whether the winner changes; only whole intervals count."""
    winners = {
        "BBR" if low > 0.5 else "CUBIC" if high < 0.5 else "" for low, high in _ends(shallow, deep)
    }
    if "" in winners:
        return "In the shallowest or the deepest buffer it is too close to call"
    return "The buffer decides who wins" if len(winners) > 1 else "The same one wins in both"


def _ends(*shares: Estimate) -> Iterator[tuple[float, float]]:
    """Both ends of each interval; all that is possible where there is none."""
    for share in shares:
        yield (
            0.0 if share.lo is None else share.lo,
            1.0 if share.hi is None else share.hi,
        )


def _ranking(cells: Cells, buffer: float) -> str:
    own = cells.table(table(SHARE, buffer))
    means = {
        row: _average([own.mean(row, column) for column in own.columns() if column != row])
        for row in own.rows()
    }
    ranked = sorted(means, key=lambda row: -means[row])
    listed = ", ".join(f"{row} {means[row]:.0%}" for row in ranked)
    return f"At {buffer_name(buffer)}, mean share beside every other control: {listed}."


def _worst(cells: Cells) -> Iterator[str]:
    """The most harm beyond what a control does to itself (Ware et al.)."""
    found = [
        (own.mean(victim, by) or 0.0, own.mean(by, by) or 0.0, victim, by, buffer)
        for buffer in BUFFERS
        for own in [cells.table(table(HARM, buffer))]
        for victim in own.rows()
        for by in own.columns()
        if victim != by
    ]
    worst, usual, victim, by, buffer = max(found)
    yield (
        f"The most harm is done to {victim} by {by} at {buffer_name(buffer)}: it loses {worst:.0%} "
        f"of what it has alone, where {by} costs another {by} flow {usual:.0%} and equals would "
        f"cost each other {_SELF_HARM:.0%}."
    )


def _delays(cells: Cells, buffer: float) -> str:
    own = cells.table(table(DELAY, buffer))
    places = [(own.mean(r, c), r, c) for r in own.rows() for c in own.columns()]
    present = [(mean, r, c) for mean, r, c in places if mean is not None]
    low, high = min(present), max(present)
    return (
        f"Mean queueing delay at {buffer_name(buffer)}: from {digits(low[0])} ms ({low[1]} and "
        f"{low[2]}) to {digits(high[0])} ms ({high[1]} and {high[2]})."
    )


def _average(values: list[float | None]) -> float:
    present = [value for value in values if value is not None]
    return math.fsum(present) / len(present) if present else math.nan
