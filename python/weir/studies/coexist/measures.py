"""Shares of pairs, and harm."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from weir.cells.cells import Cells
from weir.dynamics.fairness import harm_interval
from weir.experiments.contest import Contests
from weir.statistics.intervals import Estimate, mean_interval

BySeed = Mapping[int, float | None]


def contenders(stacks: Sequence[str]) -> list[tuple[str, str]]:
    """Every pair once, each control with itself included, then each alone."""
    pairs = list(itertools.combinations_with_replacement(stacks, 2))
    return [*pairs, *((stack, "") for stack in stacks)]


def shares(ours: BySeed, theirs: BySeed) -> list[float]:
    """Of the goodput of both, in each seed."""
    both = (
        (ours[seed] or 0.0, theirs[seed] or 0.0) for seed in sorted(ours.keys() & theirs.keys())
    )
    return [one / (one + other) for one, other in both if one + other > 0]


def larger_share(both: Sequence[float]) -> float | None:
    """Among equals the mean is a half however unfair single runs are: what the larger one had."""
    return mean_interval(max(share, 1 - share) for share in both).mean


def places(
    contests: Contests, buffer: float, stacks: Sequence[str]
) -> Iterator[tuple[object, ...]]:
    """Row, column, goodputs of both, and the label of the case in which they meet."""
    for row, one in enumerate(stacks):
        for column, other in enumerate(stacks):
            pair = (one, other) if row <= column else (other, one)
            label = f"{buffer:g} BDP, {pair[0]} and {pair[1]}"
            first, second = (contests.flow(label, name, "goodput_mbps") for name in _FLOWS)
            yield one, other, *((first, second) if row <= column else (second, first)), label


_FLOWS = ("first", "second")


def harm(contests: Contests, buffer: float, stack: str, ours: BySeed) -> Estimate:
    """What a control loses of the goodput that it has alone (Ware et al. 2019), seed by seed."""
    alone = contests.flow(f"{buffer:g} BDP, {stack} alone", "first", "goodput_mbps")
    return harm_interval(alone, ours, "more")


def mean_shares(own: Cells) -> list[tuple[float, str]]:
    """The mean share of each control beside all others, the largest first."""
    found = []
    for row in own.rows():
        means = [own.mean(row, column) for column in own.columns() if column != row]
        known = [mean for mean in means if mean is not None]
        found.append((math.fsum(known) / len(known) if known else math.nan, row))
    return sorted(found, key=lambda one: -one[0])


def most_harm(table: Callable[[str], Cells], buffers: Sequence[float]) -> dict[str, object]:
    """The most harm that a control does to another; what it does to its own kind is `usual`."""
    found = [
        (loss or 0.0, own.mean(by, by) or 0.0, victim, by, buffer)
        for buffer in buffers
        for own in [table(f"harm, {buffer:g} BDP")]
        for victim, by, loss in own.means()
        if victim != by
    ]
    return dict(zip(("loss", "usual", "victim", "by", "buffer"), max(found), strict=True))
