"""How a shared path was divided, and what each flow lost by sharing it.

Two scenarios are compared seed by seed, which removes the randomness common to both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from weir._native import jain_of_sums
from weir.statistics.intervals import Estimate, mean_interval, t_quantile

if TYPE_CHECKING:
    from weir.dynamics.curves import Curve

BySeed = Mapping[int, float | None]


def jain(rates: Sequence[float], demands: Sequence[float] | None = None) -> float | None:
    """Jain's index (Σ x)² / (n Σ x²): 1 when all are equal, 1/n when one has everything.

    >>> [jain(rates) for rates in ([5, 5], [10, 0], [7])]
    [1.0, 0.5, None]

    Args:
        rates: what each flow got.
        demands: requested rate of each flow, if they differ; x is then rate / demand.

    Returns:
        None with fewer than two flows, or if none got anything.
    """
    x = rates if demands is None else [r / d for r, d in zip(rates, demands, strict=True)]
    return jain_of_sums(len(x), math.fsum(x), math.fsum(value * value for value in x))


def max_min_ratio(rates: Sequence[float]) -> float | None:
    """The largest over the smallest; None with fewer than two flows or if one got nothing."""
    return max(rates) / min(rates) if len(rates) > 1 and min(rates) > 0 else None


def share(of: Curve, among: Sequence[Curve], from_s: float, to_s: float) -> float | None:
    """The part that one flow has of all that `among`, itself included, deliver between two times.

    From its start to its end it is the share of a late flow over its life. None if nothing arrives.
    """

    def delivered(flow: Curve) -> float:
        return float(flow.delivered(to_s) - flow.delivered(from_s))

    total = math.fsum(map(delivered, among))
    return delivered(of) / total if total > 0 else None


def harm(solo: float, shared: float, better: Literal["more", "less"]) -> float | None:
    """How much worse one fares next to another flow than alone: 0 not at all, 1 as badly as can be.

    Ware, Mukerjee, Seshan and Sherry (HotNets 2019): (solo - shared) / solo where more is better,
    as for goodput, and (shared - solo) / shared where less is, as for delay. Below 0 it is a gain.
    The harm of a newcomer is acceptable if it is at most that among incumbents.
    None where there is nothing to lose.
    """
    base = solo if better == "more" else shared
    lost = solo - shared if better == "more" else shared - solo
    return lost / base if base > 0 else None


def harm_interval(solo: BySeed, shared: BySeed, better: Literal["more", "less"]) -> Estimate:
    """The mean harm over repeats with its interval, each with the solo run of its own seed."""
    harms = _by_seed(solo, shared, lambda alone, shared: harm(alone, shared, better))
    return mean_interval(harms, (None, 1.0))


def size_fairness(solo: BySeed, shared: BySeed) -> Estimate:
    """What flows of one size have next to others over what they have alone, seed by seed.

    For the goodput or the latency of requests next to streams: 1 means that they do not notice.
    """
    ratios = _by_seed(solo, shared, lambda alone, shared: shared / alone if alone > 0 else None)
    return mean_interval(ratios, (0.0, None))


def rtt_exponent(rtts: Sequence[float], rates: Sequence[float]) -> Estimate:
    """The exponent a of x ∝ RTT^-a by least squares in logarithms, with its 95 % interval.

    0 is independent of the RTT, 1 inversely proportional to it; Reno's square-root law over a
    common loss rate gives 1 (Mathis et al. 1997). The interval is Student's with n - 2 degrees of
    freedom and takes points as independent. No exponent without two different RTTs, or if a flow
    got nothing at all.
    """
    n = len(rtts)
    if len(rates) != n:
        raise ValueError(f"{n} RTTs and {len(rates)} rates")
    if len(set(rtts)) < 2 or min(rates) <= 0 or min(rtts) <= 0:
        return Estimate(None, None, None, n)
    x, y = [math.log(rtt) for rtt in rtts], [math.log(rate) for rate in rates]
    mean_x, mean_y = math.fsum(x) / n, math.fsum(y) / n
    spread = math.fsum((v - mean_x) ** 2 for v in x)
    slope = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    if n < 3:
        return Estimate(-slope, None, None, n)
    residuals = [b - mean_y - slope * (a - mean_x) for a, b in zip(x, y, strict=True)]
    error = math.sqrt(math.fsum(r * r for r in residuals) / (n - 2) / spread)
    half = t_quantile(n - 2) * error
    return Estimate(-slope, -slope - half, -slope + half, n)


def _by_seed(
    solo: BySeed, shared: BySeed, compared: Callable[[float, float], float | None]
) -> list[float | None]:
    pairs = ((solo[seed], shared[seed]) for seed in sorted(solo.keys() & shared.keys()))
    return [compared(a, b) for a, b in pairs if a is not None and b is not None]
