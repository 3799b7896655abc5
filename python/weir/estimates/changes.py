"""Whether the rate changed over time, and how."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weir.estimates.packets import Floats, Packets
from weir.estimates.path import Steps
from weir.estimates.rate import PacketTrains

OPPORTUNITY_BYTES = 1500
"""What passes at each time of a trace in mahimahi's format."""


def steps(found: PacketTrains) -> Steps:
    """The rate over time; empty if it is constant. Between trains it is interpolated."""
    end = float(found.end_s.max())
    width = max(end / _MOST_BINS, _LEAST_BIN_S)
    bins = np.arange(0.0, end + width, width)
    sizes, times = np.zeros(bins.size), np.zeros(bins.size)
    for start, stop, size in zip(found.start_s, found.end_s, found.size, strict=True):
        for k in range(int(start / width), int(stop / width) + 1):
            part = min(stop, (k + 1) * width) - max(start, k * width)
            sizes[k] += size * part / (stop - start)
            times[k] += part
    known = times > _LEAST_COVERED * width
    if known.sum() < _LEAST_BINS:
        return ()
    rates = sizes[known] * 8e-6 / times[known]
    low, middle, high = (float(np.quantile(rates, q)) for q in (0.1, 0.5, 0.9))
    if high - low < _VARIES * middle:
        return ()
    every = np.interp(bins, bins[known], rates)
    return tuple(_merged(bins.tolist(), every.tolist()))


def trace(packets: Packets, steps: Steps, delay_s: float) -> tuple[int, ...]:
    """The milliseconds at which the bottleneck can pass a packet.

    While a queue is there, these are the times at which packets left it. In between the rate is
    that of `steps`. `delay_s` is the round trip without queues, all of it after the bottleneck, as
    in a scenario.
    """
    passed_s = _spread(packets.acked_s) - delay_s
    arrived_s = packets.sent_s[packets.samples]
    size = np.diff(packets.delivered[packets.samples], prepend=0.0) / OPPORTUNITY_BYTES
    idle_s = np.maximum(arrived_s - np.concatenate([[0.0], passed_s[:-1]]), 0.0)
    times, rates = (np.array(column) for column in zip(*steps, strict=True))
    # Steps are at the times of acknowledgements.
    rate = rates[np.maximum(np.searchsorted(times, arrived_s + delay_s, side="right") - 1, 0)]
    # Whole opportunities pass unused, so that those which were used keep their times.
    unused = np.floor(np.cumsum(idle_s * rate * 1e6 / 8 / OPPORTUNITY_BYTES))
    ends = np.concatenate([[0.0], np.cumsum(size) + unused])
    at = np.interp(np.arange(1.0, ends[-1] + _PART), ends, np.concatenate([[0.0], passed_s]))
    return tuple(np.maximum(np.ceil(at * 1e3), 1.0).astype(int).tolist())


def _spread(times: Floats) -> Floats:
    """The times, with those that are equal distributed since the one before them."""
    distinct, place, count = np.unique(times, return_inverse=True, return_counts=True)
    before = np.concatenate([[0.0], distinct[:-1]])
    rank = np.arange(times.size) - np.concatenate([[0], np.cumsum(count)[:-1]])[place] + 1
    found: Floats = before[place] + (distinct - before)[place] * rank / count[place]
    return found


def _merged(times: list[float], rates: list[float]) -> Iterator[tuple[float, float]]:
    """The steps without those that change little."""
    now = 0.0
    for at, rate in zip(times, rates, strict=True):
        if abs(rate - now) > _LITTLE * now:
            now = rate
            yield at, rate


_VARIES = 0.2
"""Range of the rate, over its median, from which it changes."""
_LITTLE = 0.03
_MOST_BINS = 1000
_LEAST_BINS = 10
_LEAST_BIN_S = 0.1
_LEAST_COVERED = 0.2
"""Share of a bin in which the bottleneck must have been busy."""
MOST_STEPS = 20
"""Above it a trace describes the rate better."""
_PART = 0.01
"""Of an opportunity, for errors of rounding."""
