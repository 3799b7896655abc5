"""Other traffic that shares the bottleneck, as what its queue sends between the flow's own packets.

While packets wait, the bottleneck is never idle. What it does not send of the flow is of others
(iBox, Ashok et al. 2020, uses the same balance). Its own rate shows where the flow sent a burst:
few packets of others get between these (packet pairs: Keshav, SIGCOMM 1991).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.estimates.packets import Floats, Packets
from weir.estimates.quantity import Quantity
from weir.estimates.rate import bursts, middle


@dataclass(frozen=True)
class Shared:
    """A bottleneck with steady other traffic. Rates are Mbit/s of IP bytes."""

    rate: Quantity
    cross: Quantity


def find(packets: Packets, mbps: float) -> Shared | None:
    """The bottleneck's rate and that of others, where the flow has `mbps` of it; None without."""
    burst = bursts(packets)
    top = _highest_mode(burst)
    if top is None or not 1 + _LEAST_SHARE < top / mbps < _MOST_RATIO:
        return None
    rate = middle(burst[np.abs(burst / top - 1) <= _WIDTH])
    own = _own(packets, mbps * 1e6 / 8)
    if own.size < _FEWEST_BINS:
        return None
    flow = middle(own)
    cross = rate.value - flow.value
    half = float(np.hypot(_half(rate), _half(flow)))
    return Shared(rate, Quantity(cross, max(cross - half, 0.0), cross + half))


def _own(packets: Packets, rate: float) -> Floats:
    """The flow's rate in half seconds in which packets waited most of the time."""
    acked, waits = packets.acked_s, packets.waits_s
    gap, size = np.diff(acked), np.diff(packets.delivered[packets.samples])
    between = size - packets.size[packets.samples[1:]]
    busy = (waits[1:] * rate > between + packets.full) & (size > 0)
    place = (acked[1:] // _BIN_S).astype(int)
    times = np.bincount(place, gap * busy)
    sizes = np.bincount(place, size * busy)
    covered = times > _COVERED * _BIN_S
    rates: Floats = sizes[covered] * 8e-6 / times[covered]
    return rates


def _highest_mode(rates: Floats) -> float | None:
    """The highest rate that many have."""
    ordered = np.sort(rates)
    upper = np.searchsorted(ordered, ordered * (1 + _WIDTH))
    counts = upper - np.arange(ordered.size)
    many = np.flatnonzero(counts >= max(_MODE * ordered.size, _FEWEST_EQUAL))
    if not many.size:
        return None
    start = int(many[-1])
    return float(np.median(ordered[start : int(upper[start])]))


def _half(quantity: Quantity) -> float:
    return (quantity.value if quantity.high is None else quantity.high) - quantity.value


_BIN_S = 0.5
_COVERED = 0.5
_FEWEST_BINS = 4
_MODE = 0.2
_FEWEST_EQUAL = 10
_WIDTH = 0.01
_LEAST_SHARE = 0.05
"""Other traffic below this share of the flow's rate is not looked for."""
_MOST_RATIO = 4.0
"""A larger ratio of the two rates is that of acknowledgements which were held and released."""
