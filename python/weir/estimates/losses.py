"""The size of the queue and the share of random losses, by what the queue held before each loss.

A full drop-tail queue drops the packets that arrive while it holds most. A random loss comes at any
time. So losses within the range of the most that it held are those of the queue, if packets are
lost more often there than elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.estimates.packets import Flags, Floats, Indices, Packets
from weir.estimates.quantity import Quantity, share
from weir.statistics.counts import fisher_greater


@dataclass(frozen=True)
class Losses:
    """Where packets were lost."""

    queue_bytes: Quantity
    """The limit of the queue, or what it held at least."""
    random: Quantity
    """The share of packets lost while the queue was not full."""
    overflows: int
    """Packets lost by the full queue."""
    run: float | None = None
    """The mean number of random losses in a row, if they come in bursts."""


def separate(packets: Packets, waiting: Floats) -> Losses:
    """Separates the losses of a full queue from others.

    `waiting` are the bytes in the queue before each packet, NaN where that is unknown.
    """
    known = ~np.isnan(waiting)
    level = longest(waiting[packets.samples])
    is_high = known & (waiting >= level - slack(packets.full, level))
    rest = known & ~is_high
    overflows, others = (int((part & packets.lost).sum()) for part in (is_high, rest))
    counts = (overflows, int(is_high.sum()), others, int(rest.sum()))
    held = level + packets.full
    if held < _LEAST_QUEUE * packets.full or not is_queue(*counts):
        chance = share(overflows + others, int(known.sum()))
        run = _run(packets.lost[known], chance.value)
        return Losses(Quantity(held, held, None), chance, 0, run)
    near = _near_overflows(packets, waiting, np.flatnonzero(is_high & packets.lost))
    whole = float(np.quantile(near, _FULL)) / packets.full + 1
    limit = float(np.ceil(whole - _PART)) * packets.full
    queue = Quantity(limit, limit - packets.full, limit + packets.full)
    chance = share(others, int(rest.sum()))
    return Losses(queue, chance, overflows, _run(packets.lost[rest], chance.value))


def longest(waits: Floats) -> float:
    """The longest wait, without the few that a late acknowledgement made longer."""
    known = waits[~np.isnan(waits)]
    rank = max(int(known.size * _OUTLIERS), 2)
    return float(np.sort(known)[-min(rank, known.size)])


def slack(packet: float, level: float) -> float:
    """How much less than the most, `level`, a full queue may hold before a packet.

    All three are bytes, or the times that these bytes wait.
    """
    return max(_SLACK_PACKETS * packet, _SLACK_SHARE * level)


def is_queue(overflows: int, high: int, others: int, rest: int) -> bool:
    """Whether packets are lost more often at the longest waits than elsewhere."""
    return fisher_greater(overflows, high - overflows, others, rest - others) < _CHANCE


def _run(lost: Flags, chance: float) -> float | None:
    """The mean number of losses in a row, if the packet after a lost one is lost more often."""
    after = lost[1:][lost[:-1]]
    if after.sum() < _LEAST_PAIRS or after.mean() < _BURSTY * chance:
        return None
    return float(1 / (1 - min(after.mean(), _MOST_AFTER)))


def _near_overflows(packets: Packets, waiting: Floats, lost: Indices) -> Floats:
    """What was in the queue before the packets around those that it dropped."""
    place = np.searchsorted(packets.samples, lost)
    around = np.concatenate([place - 1, place])
    around = np.unique(around[(around >= 0) & (around < packets.samples.size)])
    near: Floats = waiting[packets.samples[around]]
    return near[~np.isnan(near)]


_FULL = 0.95
_OUTLIERS = 0.001
_LEAST_QUEUE = 2
_SLACK_PACKETS = 1.5
_SLACK_SHARE = 0.15
_CHANCE = 1e-3
_LEAST_PAIRS = 5
_BURSTY = 4
_MOST_AFTER = 0.99
_PART = 0.15
"""Share of a packet by which a wait may be too long."""
