"""Jitter of the delay: packets that were sent apart are acknowledged together.

Behind a bottleneck of a constant rate, acknowledgements are at least as far apart as it needs for
the packets between them. Jitter that keeps the order breaks this rule: packets wait for a late one
and arrive with it. Such waits are none of the bottleneck's queue.
"""

from __future__ import annotations

import numpy as np

from weir.estimates.packets import Packets
from weir.estimates.quantity import Quantity

WAITS = 3.0
"""Spreads above which a wait is that of a queue."""
TRAIN = 48
"""Packets of a train whose ends jitter does not move by much."""


def largest_ms(spread: float) -> Quantity:
    """The largest deviation from the delay, of uniform jitter with this spread in seconds.

    Of independent delays the middle 90 % are 1.8 times as wide; order and bursts change that.
    """
    return Quantity(*(share * spread * 1e3 for share in (_SHARE, _LEAST, _MOST)))


def spread_s(packets: Packets, mbps: float) -> float:
    """By how much the round trips of neighbours differ because of jitter; 0 without it."""
    gap = np.diff(packets.acked_s)
    size = np.diff(packets.delivered[packets.samples])
    near = (size >= packets.full) & (size < _MOST_PACKETS * packets.full)
    together = gap[near] < _TOGETHER * size[near] * 8e-6 / mbps
    if near.sum() < _FEWEST or together.mean() < _LEAST_SHARE:
        return 0.0
    windows = np.lib.stride_tricks.sliding_window_view(packets.rtt_s[packets.samples], _AROUND)
    centre = _AROUND // 2
    middle = packets.rtt_s[packets.samples][centre : centre + windows.shape[0]]
    low, high = np.quantile(middle - np.median(windows, axis=1), (0.05, 0.95))
    return float(high - low)


_TOGETHER = 1 / 3
"""Share of the time that the bottleneck needs, below which packets arrived together."""
_LEAST_SHARE = 0.1
_MOST_PACKETS = 3
_FEWEST = 100
_SHARE, _LEAST, _MOST = 0.6, 0.45, 0.8
_AROUND = 31
"""Packets around one, of which the median is taken."""
