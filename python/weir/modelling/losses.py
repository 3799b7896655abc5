"""The size of the queue and the share of random losses, by the wait before each loss.

A full drop-tail queue drops the packets that arrive while the wait is longest. A random loss comes
at any wait. So losses within the range of the longest waits are those of the queue, if packets are
lost more often there than elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.modelling.packets import Flags, Floats, Indices, Packets
from weir.modelling.quantity import Quantity, share


@dataclass(frozen=True)
class Losses:
    """Where packets were lost."""

    queue_bytes: Quantity
    """The limit of the queue, or what it held at least."""
    random: Quantity
    """The share of packets lost while the queue was not full."""
    overflows: int
    """Packets lost by the full queue."""
    randoms: int
    """Packets lost otherwise."""
    run: float | None = None
    """The mean number of random losses in a row, if they come in bursts."""


def separate(packets: Packets, mbps: float) -> Losses:
    """Separates the losses of a full queue from others, behind a bottleneck of `mbps`."""
    rate = mbps * 1e6 / 8
    everything = np.arange(packets.sent_s.size)
    before = packets.wait_before(everything, _NEAR)
    known = ~np.isnan(before)
    level = longest(packets.waits_s)
    is_high = known & (before >= level - slack(packets.full, level, rate))
    rest = known & ~is_high
    overflows, others = (int((part & packets.lost).sum()) for part in (is_high, rest))
    counts = (overflows, int(is_high.sum()), others, int(rest.sum()))
    held = level * rate + packets.full
    if held < _LEAST_QUEUE * packets.full or not is_queue(*counts):
        chance = share(overflows + others, int(known.sum()))
        run = _run(packets.lost[known], chance.value)
        return Losses(Quantity(held, held, None), chance, 0, overflows + others, run)
    near = _near_overflows(packets, np.flatnonzero(is_high & packets.lost))
    whole = float(np.quantile(near, _FULL)) * rate / packets.full + 1
    limit = float(np.ceil(whole - _PART)) * packets.full
    queue = Quantity(limit, limit - packets.full, limit + packets.full)
    chance = share(others, int(rest.sum()))
    return Losses(queue, chance, overflows, others, _run(packets.lost[rest], chance.value))


def longest(waits: Floats) -> float:
    """The longest wait, without the few that a late acknowledgement made longer."""
    rank = max(int(waits.size * _OUTLIERS), 2)
    return float(np.sort(waits)[-min(rank, waits.size)])


def slack(packet: int, level: float, rate: float) -> float:
    """How much shorter than the longest wait, `level`, one of a full queue may be, in seconds."""
    return max(_SLACK_PACKETS * packet / rate, _SLACK_SHARE * level)


def is_queue(overflows: int, high: int, others: int, rest: int) -> bool:
    """Whether packets are lost more often at the longest waits than elsewhere."""
    from scipy.stats import fisher_exact

    table = np.array([[overflows, high - overflows], [others, rest - others]])
    return bool(fisher_exact(table, alternative="greater").pvalue < _CHANCE)


def _run(lost: Flags, chance: float) -> float | None:
    """The mean number of losses in a row, if the packet after a lost one is lost more often."""
    after = lost[1:][lost[:-1]]
    if after.sum() < _LEAST_PAIRS or after.mean() < _BURSTY * chance:
        return None
    return float(1 / (1 - min(after.mean(), _MOST_AFTER)))


def _near_overflows(packets: Packets, lost: Indices) -> Floats:
    """The waits of the packets around those that the queue dropped."""
    place = np.searchsorted(packets.samples, lost)
    around = np.concatenate([place - 1, place])
    around = np.unique(around[(around >= 0) & (around < packets.samples.size)])
    waits: Floats = packets.waits_s[around]
    return waits


_NEAR = 64
"""Packets within which a sample says how long the queue was."""
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
