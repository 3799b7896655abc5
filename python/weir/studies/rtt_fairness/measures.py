"""Points and exponents of goodput against the round trip."""

from __future__ import annotations

from collections.abc import Sequence

from weir.dynamics.fairness import rtt_exponent
from weir.experiments.contest import Contests
from weir.statistics.intervals import Estimate, mean_interval

Point = tuple[float, float]
"""RTT and goodput of the long way, both over those of the short one."""


def points(contests: Contests, queue: str, stack: str, ratio: int) -> dict[int, Point]:
    """The point of each seed; RTTs are as measured, queues included."""
    case = f"{queue}, {stack}, {ratio} to 1"
    rates = [contests.flow(case, name, "goodput_mbps") for name in ("long", "short")]
    rtts = [contests.flow(case, name, "rtt_ms_mean") for name in ("long", "short")]
    found = {}
    for seed in sorted(rates[0].keys() & rates[1].keys()):
        (long, short), (far, near) = ([own[seed] for own in each] for each in (rates, rtts))
        if long and short and far and near:
            found[seed] = far / near, long / short
    return found


def exponent(contests: Contests, queue: str, stack: str, ratios: Sequence[int]) -> Estimate:
    """The exponent over all ratios, fitted seed by seed."""
    by_seed: dict[int, list[Point]] = {}
    for ratio in ratios:
        for seed, point in points(contests, queue, stack, ratio).items():
            by_seed.setdefault(seed, []).append(point)
    fits = [rtt_exponent(*zip(*own, strict=True)) for own in by_seed.values()]
    return mean_interval(fit.mean for fit in fits)
