"""Whether the rate changed over time, and how."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weir.modelling.path import Steps
from weir.modelling.rate import Trains


def steps(found: Trains) -> Steps:
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
