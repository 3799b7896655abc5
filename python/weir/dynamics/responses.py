"""How one flow behaves over time: how fast it starts, how it answers a step, how it oscillates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.base.errors import InputError
from weir.dynamics.convergence import first_held
from weir.dynamics.criteria import HOLD_S, SHORTEST_BIN_S
from weir.dynamics.curves import Curve, bins
from weir.statistics.censoring import Wait

TIME_SCALES_S = (0.1, 1.0, 10.0)
_BITS = 8e-6
_PACKET_BYTES = 1500


@dataclass(frozen=True, slots=True)
class StepResponse:
    """What a flow made of a step from one rate that it could have to another."""

    overshoot: float
    """How far the farthest bin goes beyond the new rate, as a part of the step; 0 if none does."""
    settling: Wait
    """How long after the step every bin stays near the new rate."""


@dataclass(frozen=True, slots=True)
class Variation:
    """How much the goodput of a flow varies from bin to bin at one time scale."""

    bin_s: float
    bins: int
    cov: float | None
    """Standard deviation over mean (Floyd, Handley, Padhye and Widmer 2000); None if it is idle."""
    largest_drop: float | None
    """The largest part that is lost from one bin to the next (RFC 5166 §2.2)."""


def ramp_up(flow: Curve, powers: Sequence[int] = range(5)) -> dict[int, Wait]:
    """By n, how long after its start a flow has delivered 1500·10^n bytes.

    It is the first sample by which it has: never too early, and late by one sample at most.
    """
    found = {}
    for power in powers:
        mbit = _PACKET_BYTES * 10**power * _BITS
        at = int(np.searchsorted(flow.delivered_mbit, mbit * (1 - 1e-9)))
        seen_s = flow.seen_s - flow.start_s
        reached = at < len(flow.times_s)
        found[power] = (
            Wait(float(flow.times_s[at]) - flow.start_s) if reached else Wait(None, seen_s)
        )
    return found


def delivered_area(flow: Curve, seconds: float) -> float:
    """∫ delivered dt over a flow's first `seconds`, in Mbit·s: the larger, the faster the start."""
    end_s = min(flow.start_s + seconds, flow.seen_s)
    times = np.append(flow.times_s[flow.times_s < end_s], end_s)
    return float(np.trapezoid(flow.delivered(times), times))


def step_response(
    flow: Curve,
    at_s: float,
    to_s: float,
    *,
    before_mbps: float,
    after_mbps: float,
    tolerance: float = 0.1,
    bin_s: float = SHORTEST_BIN_S,
    hold_s: float = HOLD_S,
) -> StepResponse:
    """How a flow follows, from `at_s` on, when what it may have steps from one rate to another.

    Settled is the first bin from which on every bin for `hold_s` is within `tolerance` of the new
    rate; censored if there is none before `to_s`.

    Raises:
        InputError: the two rates are equal, or the bins are narrower than the samples.
    """
    if before_mbps == after_mbps:
        raise InputError(f"before_mbps and after_mbps are both {after_mbps:g}: that is no step")
    rates = flow.rates(bins([flow], bin_s, at_s, to_s))
    beyond = (rates - after_mbps) / (after_mbps - before_mbps)
    near = np.abs(rates - after_mbps) <= tolerance * after_mbps
    return StepResponse(float(np.max(beyond, initial=0.0)), first_held(near, bin_s, hold_s))


def variation(
    flow: Curve, from_s: float, to_s: float, scales_s: Sequence[float] = TIME_SCALES_S
) -> list[Variation]:
    """How smooth a flow is at several time scales, without those that have no second bin."""
    found = []
    for bin_s in scales_s:
        rates = flow.rates(bins([flow], bin_s, from_s, to_s))
        if len(rates) < 2:
            continue
        mean = float(rates.mean())
        before, after = rates[:-1], rates[1:]
        drops = (before - after)[before > 0] / before[before > 0]
        found.append(
            Variation(
                bin_s,
                len(rates),
                cov=float(rates.std()) / mean if mean > 0 else None,
                largest_drop=float(np.max(drops, initial=0.0)) if mean > 0 else None,
            )
        )
    return found
