"""DCTCP's alpha, which is in no table.

It is computed from the queue's marks as RFC 8257 §3.3 computes it from the receiver's: one step per
round trip of the sender's smoothed RTT.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import numpy as np

from weir.conform.measures.observed import Observed
from weir.dynamics.curves import Array

__all__ = ["dctcp_alpha"]

_GAIN = 1 / 16


def dctcp_alpha(
    run: Observed, *, extreme: Literal["least", "most"], from_s: float, to_s: float = math.inf
) -> float | None:
    """The smallest or largest alpha between two times."""
    times, values = alpha(run)
    found = values[(times > from_s) & (times < to_s)]
    if not len(found):
        return None
    return float(found.min() if extreme == "least" else found.max())


@lru_cache(maxsize=8)
def alpha(run: Observed) -> tuple[Array, Array]:
    """Times and the alpha at them, from 1 at the start, as in Linux and ns-3."""
    times = run.queues["t_s"].to_numpy()
    marks = run.queues["marks"].cast(float).to_numpy()
    own = run.samples.drop_nulls("srtt_ms")
    sampled, srtts = own["t_s"].to_numpy(), own["srtt_ms"].to_numpy() / 1e3
    now, value = float(sampled[0]), 1.0
    found = [(now, value)]
    while now < times[-1]:
        then = now + float(np.interp(now, sampled, srtts))
        marked = float(np.interp(then, times, marks) - np.interp(now, times, marks))
        delivered = float(run.curve.delivered(then) - run.curve.delivered(now))
        packets = delivered * 1e6 / 8 / run.mss
        share = min(1.0, marked / packets) if packets > 0 else 0.0
        value += _GAIN * (share - value)
        now = then
        found.append((now, value))
    return np.array([time for time, _ in found]), np.array([alpha for _, alpha in found])
