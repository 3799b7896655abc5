"""What is measured of a flow in every part of the study, as numbers per seed and as estimates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weir.stats import Bounds, Estimate, mean_interval, mean_ratio
from weir.studies.contest import Contests

BySeed = Mapping[int, float | None]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A column of table `flows`, in the slides' units."""

    name: str
    column: str
    unit: str
    scale: float = 1.0
    bounds: Bounds = (0.0, None)

    def by_seed(self, contests: Contests, label: str, flow: str = "flow") -> BySeed:
        """Its value in each repeat of a case."""
        return {
            seed: None if value is None else value * self.scale
            for seed, value in contests.flow(label, flow, self.column).items()
        }

    def of(self, contests: Contests, label: str, flow: str = "flow") -> Estimate:
        """Its mean over the repeats of a case."""
        return mean_interval(self.by_seed(contests, label, flow).values(), self.bounds)


THROUGHPUT = Quantity("throughput", "goodput_mbps", "kbit/s", 1000.0)
"""Payload that arrived in order, over the time that is measured."""

RETRANSMISSIONS = Quantity("retransmissions", "retransmits", "segments")
DELAY = Quantity("delay", "delay_ms_mean", "ms")
"""Mean time of a data packet from one end to the other."""

TIMEOUTS = Quantity("timeouts", "timeouts", "timeouts")

QUANTITIES = (THROUGHPUT, RETRANSMISSIONS, DELAY)


def ratio(ours: BySeed, theirs: BySeed) -> Estimate:
    """The mean of one over the mean of the other, repeats matched by their seed.

    Neither is ever negative, nor is what is said of their ratio.
    """
    seeds = sorted(ours.keys() & theirs.keys())
    free = mean_ratio([ours[seed] for seed in seeds], [theirs[seed] for seed in seeds])
    return free if free.lo is None else replace(free, lo=max(free.lo, 0.0))


def summed(parts: Sequence[BySeed]) -> BySeed:
    """By seed, the sum of what every part has; of seeds that all of them have."""
    seeds = set.intersection(*(set(part) for part in parts)) if parts else set()
    return {seed: math.fsum(part[seed] or 0.0 for part in parts) for seed in sorted(seeds)}
