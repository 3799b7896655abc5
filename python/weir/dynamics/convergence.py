"""What happens when flows start and end: how fast they share, and who takes freed capacity.

Everything is read from the flows' curves over bins of time, which begin at the event in question.
Definitions and their sources are in docs/metrics.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from weir.base.errors import InputError
from weir.dynamics.criteria import EPSILON, HOLD_S, RECLAIMED, SHORTEST_BIN_S, Rule
from weir.dynamics.curves import Array, Curve, bins
from weir.dynamics.fairness import jain
from weir.statistics.censoring import Wait

_SLACK = 1e-9
"""What floating point may take from a ratio of two sums."""


@dataclass(frozen=True)
class Epoch:
    """A span of time in which the same flows are active, and how it began."""

    start_s: float
    end_s: float
    """Until when all of them are seen: the next change, or the last sample before it."""
    active: tuple[Curve, ...]
    joined: tuple[Curve, ...]
    """Those that start at `start_s`."""
    left: tuple[Curve, ...]
    """Those that end at `start_s`."""

    @property
    def seconds(self) -> float:
        """Its length in s."""
        return max(0.0, self.end_s - self.start_s)


def epochs(flows: Sequence[Curve]) -> list[Epoch]:
    """The spans of one run between the moments at which a flow starts or ends."""
    starts = {flow.start_s for flow in flows}
    ends = {flow.left_s for flow in flows if flow.left_s is not None}
    moments = [*sorted(starts | ends), math.inf]
    found = []
    for begin, end in itertools.pairwise(moments):
        active = tuple(
            f for f in flows if f.start_s <= begin and (f.left_s is None or f.left_s > begin)
        )
        if not active:
            continue
        found.append(
            Epoch(
                begin,
                min([end, *(flow.seen_s for flow in active)]),
                active,
                joined=tuple(flow for flow in flows if flow.start_s == begin),
                left=tuple(flow for flow in flows if flow.left_s == begin),
            )
        )
    return found


def convergence(
    flows: Sequence[Curve],
    from_s: float,
    to_s: float,
    *,
    bin_s: float = SHORTEST_BIN_S,
    epsilon: float = EPSILON,
    hold_s: float = HOLD_S,
    rule: Rule = "ratio",
    fair_mbps: float | None = None,
) -> Wait:
    """ε-convergence: the first bin from which on every bin is fair for `hold_s`, since `from_s`.

    By the rule `ratio` a bin is fair where the smallest goodput is at least 1 − ε of the largest
    (RFC 5166 §2.3), by `share` where every flow is within ε of its fair share: `fair_mbps`, or an
    equal part of what the flows get together in that bin. A bin in which nothing arrives is not
    fair. It is censored at the last moment from which `hold_s` would have been seen.

    Raises:
        InputError: ε is not between 0 and 1, or the bins are narrower than the samples.
    """
    if not 0 <= epsilon < 1:
        raise InputError(f"epsilon={epsilon:g}: it must be at least 0 and below 1")
    edges = bins(flows, bin_s, from_s, to_s)
    rates = np.array([flow.rates(edges) for flow in flows])
    if rule == "ratio":
        fair = rates.min(axis=0) >= (1 - epsilon - _SLACK) * rates.max(axis=0)
    else:
        target = rates.mean(axis=0) if fair_mbps is None else fair_mbps
        fair = (np.abs(rates - target) <= (epsilon + _SLACK) * target).all(axis=0)
    return first_held(fair & (rates.max(axis=0) > 0), bin_s, hold_s)


def reclaim(
    flows: Sequence[Curve],
    left: Sequence[Curve],
    at_s: float,
    to_s: float,
    *,
    bin_s: float = SHORTEST_BIN_S,
    share: float = RECLAIMED,
    hold_s: float = HOLD_S,
) -> Wait | None:
    """How long after `left` have gone, at `at_s`, `flows` hold `share` of what was set free.

    Set free is what those that left had, and to be added to what the others had, both over the
    `hold_s` before. Reclaimed it is with the first bin that reaches that, if the mean over the
    `hold_s` from its beginning does too: one retransmission must not undo it, nor one burst do it.
    None if no capacity was freed or no flow is left to take it.
    """
    before_s = min((flow.seen_s for flow in left), default=at_s)
    since_s = max([before_s - hold_s, *(flow.start_s for flow in left)])
    if not flows or since_s >= before_s:
        return None
    freed = sum(flow.rate(since_s, before_s) for flow in left)
    had = sum(
        flow.rate(max(since_s, flow.start_s), before_s) for flow in flows if flow.start_s < before_s
    )
    if freed <= 0:
        return None
    edges = bins(flows, bin_s, at_s, to_s)
    total = np.sum([flow.rates(edges) for flow in flows], axis=0)
    wanted = (had + share * freed) * (1 - _SLACK)
    held = _means_ahead(total, _whole_bins(hold_s, bin_s))
    reached = np.flatnonzero((total[: len(held)] >= wanted) & (held >= wanted))
    return _wait(reached, len(held), bin_s)


def crossing(first: Curve, late: Curve, to_s: float, *, bin_s: float = SHORTEST_BIN_S) -> Wait:
    """How long after `late` starts a bin first has more of it than of `first`."""
    edges = bins((first, late), bin_s, late.start_s, to_s)
    ahead = late.rates(edges) > first.rates(edges)
    return _wait(np.flatnonzero(ahead), len(ahead), bin_s)


def jain_over_time(
    flows: Sequence[Curve], bin_s: float = SHORTEST_BIN_S, from_s: float = 0.0
) -> pl.DataFrame:
    """Jain's index per bin over the flows active in the whole of it.

    Columns `t_s` (the middle of the bin), `flows` (how many are active) and `jain_index`, null with
    fewer than two flows or if nothing arrives.
    """
    edges = bins(flows, bin_s, from_s, max((flow.seen_s for flow in flows), default=from_s))
    # A bin that a flow is not active in the whole of has no rate of it.
    rates = np.array([_where_active(flow, edges) for flow in flows]).reshape(
        len(flows), len(edges) - 1
    )
    rows = [
        (float(begin) + bin_s / 2, len(own), jain(own))
        for begin, column in zip(edges, rates.T, strict=False)
        for own in [[float(rate) for rate in column if not math.isnan(rate)]]
    ]
    schema = {"t_s": pl.Float64, "flows": pl.Int64, "jain_index": pl.Float64}
    return pl.DataFrame(rows, schema, orient="row")


def jain_since(
    flows: Sequence[Curve], from_s: float, to_s: float, *, bin_s: float = SHORTEST_BIN_S
) -> tuple[float, float] | None:
    """The mean and the least of Jain's index over the bins in which all of `flows` are active.

    None if there is no such bin, or fewer than two flows.
    """
    edges = bins(flows, bin_s, from_s, to_s)
    columns = np.array([flow.rates(edges) for flow in flows]).T
    indices = [index for column in columns if (index := jain(column.tolist())) is not None]
    return (math.fsum(indices) / len(indices), min(indices)) if indices else None


def _where_active(flow: Curve, edges: Array) -> Array:
    """Its goodput in each bin, NaN where it does not live through the whole of one."""
    lives = (edges[:-1] >= flow.start_s - _SLACK) & (edges[1:] <= flow.seen_s + _SLACK)
    return np.where(lives, flow.rates(edges), math.nan)


def first_held(is_so: npt.NDArray[np.bool_], bin_s: float, hold_s: float) -> Wait:
    """The time to the first bin from which on `is_so` holds for `hold_s`, or censored."""
    held = _means_ahead(is_so.astype(np.float64), _whole_bins(hold_s, bin_s))
    return _wait(np.flatnonzero(held > 1 - _SLACK), len(held), bin_s)


def _means_ahead(values: Array, count: int) -> Array:
    """At each bin the mean of the `count` bins from there on, as far as there are that many."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    means: Array = (sums[count:] - sums[:-count]) / count
    return means


def _whole_bins(seconds: float, bin_s: float) -> int:
    return max(1, math.ceil(seconds / bin_s - _SLACK))


def _wait(bins_reached: npt.NDArray[np.intp], watched: int, bin_s: float) -> Wait:
    if len(bins_reached):
        return Wait(float(bins_reached[0]) * bin_s)
    return Wait(None, max(0, watched - 1) * bin_s)
