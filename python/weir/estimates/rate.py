"""The rate of the bottleneck, from acknowledgements of packets that waited behind each other.

A packet that arrives while those before it are still in the queue is sent right after them. Its
acknowledgement then follows theirs by the time that the bottleneck needs. This holds if it waited
longer than the bottleneck needs for the packets between the two. The first in, first out rule is
all that it assumes. Packet pairs use the same fact (Keshav, SIGCOMM 1991); here the wait is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.estimates.packets import Flags, Floats, Packets
from weir.estimates.quantity import Quantity

_LEAST_ERROR = 0.0005
"""Times in a capture are exact to a microsecond."""


@dataclass(frozen=True)
class PacketTrains:
    """Groups of packets that the bottleneck sent without a pause."""

    start_s: Floats
    """When its first acknowledgement came."""
    end_s: Floats
    size: Floats
    """IP bytes between them."""

    @property
    def mbps(self) -> Floats:
        """The rate of each."""
        return self.size * 8e-6 / (self.end_s - self.start_s)


def trains(packets: Packets, length: int, jitter_s: float = 0.0) -> PacketTrains:
    """The trains of at least `length` packets; longer ones are cut.

    Waits up to `jitter_s` may be those of jitter.
    """
    if packets.samples.size < _LEAST_SAMPLES:
        return _none()
    acked, waits = packets.acked_s, packets.waits_s
    delivered = packets.delivered
    last = delivered[packets.samples]
    gap, size = np.diff(acked), np.diff(last)
    between = size - packets.size[packets.samples[1:]]
    rate = _fastest_window(packets)
    found = _none()
    for _ in range(_ROUNDS):
        queued = (waits[1:] - jitter_s) * rate
        busy = (queued > between + _SLACK * packets.full) & (size > 0)
        found = _cut(acked, gap, size, busy, length * packets.full)
        if not found.size.size:
            break
        # Where the rate changes, a low one is safe: at a higher one, shorter waits are enough.
        rate = float(np.quantile(found.mbps, _SAFE)) * 1e6 / 8
    return found


def constant(found: PacketTrains) -> Quantity:
    """The rate of all trains, as their median with its 95 % interval."""
    return middle(found.mbps)


def middle(values: Floats, least_error: float = _LEAST_ERROR) -> Quantity:
    """The median with its 95 % interval; `least_error` is the relative error of exact values.

    Rates vary by factors and have no sign, so the interval is that of their logarithms.
    """
    logs = np.log(values)
    found = float(np.median(logs))
    deviation = _MAD_TO_SIGMA * float(np.median(np.abs(logs - found)))
    error = max(_MEDIAN_ERROR * deviation / np.sqrt(values.size), least_error)
    low, value, high = np.exp([found - 2 * error, found, found + 2 * error]).tolist()
    return Quantity(value, low, high)


def agree(found: PacketTrains) -> bool:
    """Whether the trains have one rate: not those of acknowledgements that were held."""
    rate = constant(found)
    return rate.high is not None and rate.high < _MOST_SPREAD * rate.low


def of_bursts(packets: Packets) -> Quantity | None:
    """The rate at which bursts arrived, if most have the same; None without enough of them.

    Packets that are sent at once leave the bottleneck one after the other, also where no queue
    stays (packet pairs: Keshav, SIGCOMM 1991). The mode is taken, since acknowledgements may come
    together and other traffic may lie between.
    """
    rates = np.sort(bursts(packets))
    if rates.size < _LEAST_BURSTS:
        return None
    ends = np.searchsorted(rates, rates * _ALIKE, side="right")
    counts = ends - np.arange(rates.size)
    start = int(np.argmax(counts))
    if counts[start] < max(_LEAST_BURSTS, _MODE * rates.size):
        return None
    found = middle(rates[start : int(ends[start])], _BURST_ERROR)
    return found if found.value * _ALIKE >= at_least(packets).value else None


def bursts(packets: Packets) -> Floats:
    """The rates at which packets were acknowledged that were sent at once, in Mbit/s."""
    samples = packets.samples
    gap = np.diff(packets.acked_s)
    size = np.diff(packets.delivered[samples])
    at_once = np.diff(packets.sent_s[samples]) < _AT_ONCE * gap
    chosen = at_once & (gap > 0) & (size >= packets.full)
    rates: Floats = size[chosen] * 8e-6 / gap[chosen]
    return rates


def at_least(packets: Packets) -> Quantity:
    """A lower bound of the rate, from the largest amount that was delivered in a round trip."""
    rate = _fastest_window(packets) * 8e-6
    return Quantity(rate, rate, None, rate * MOST_RATE)


def _fastest_window(packets: Packets) -> float:
    """The largest mean rate over a round trip, in bytes per second."""
    acked = packets.acked_s
    delivered = packets.delivered[packets.samples]
    from_ = np.searchsorted(acked, acked - max(packets.least_rtt_s, _LEAST_WINDOW)) - 1
    valid = from_ >= 0
    if not valid.any():
        span = float(acked[-1] - packets.sent_s[0]) if acked.size else 1.0
        return float(delivered[-1]) / max(span, _LEAST_WINDOW) if acked.size else 0.0
    time = acked[valid] - acked[from_[valid]]
    return float(np.max((delivered[valid] - delivered[from_[valid]]) / np.maximum(time, 1e-9)))


def _cut(acked: Floats, gap: Floats, size: Floats, busy: Flags, least: int) -> PacketTrains:
    starts, ends, sizes = [], [], []
    begin, total = 0, 0.0
    for k in range(gap.size):
        if not busy[k]:
            begin, total = k + 1, 0.0
            continue
        total += size[k]
        if total >= least and acked[k + 1] > acked[begin]:
            starts.append(acked[begin])
            ends.append(acked[k + 1])
            sizes.append(total)
            begin, total = k + 1, 0.0
    return PacketTrains(np.array(starts), np.array(ends), np.array(sizes))


def _none() -> PacketTrains:
    return PacketTrains(np.empty(0), np.empty(0), np.empty(0))


MOST_RATE = 10.0
"""How many times its lower bound a rate of which nothing else is known may be."""
LEAST_TRAINS = 4
_MOST_SPREAD = 2.0
"""Ratio of the ends of an interval above which trains do not show one rate."""
_LEAST_BURSTS = 6
_ALIKE = 1.03
_MODE = 0.5
_BURST_ERROR = 0.01
_AT_ONCE = 0.3
"""Share of the time between acknowledgements in which both packets were sent."""
_LEAST_SAMPLES = 3
_ROUNDS = 4
_SAFE = 0.1
_SLACK = 1.0
"""Packets by which a wait must be longer than those between need. One packet takes longer where the
rate is lower than at the least round trip."""
_LEAST_WINDOW = 1e-3
_MAD_TO_SIGMA = 1.4826
_MEDIAN_ERROR = 1.2533
"""The standard error of a median over that of a mean, of a normal distribution."""
