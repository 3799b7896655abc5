"""What controllers got on the path itself, in place of what is predicted for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean

from weir.advice.choices import AS_MEASURED, Option
from weir.advice.predictions import Prediction, predict, ranked, workload_of
from weir.base.errors import InputError
from weir.estimates.quantity import Quantity
from weir.modelling.loads import Load
from weir.modelling.measured import Measurement
from weir.modelling.simulate import Check, check
from weir.statistics.intervals import t_quantile

Spread = tuple[int, float]
"""Degrees of freedom, and the standard deviation of logarithms."""


def outcome(
    measured: Measurement,
    options: Sequence[Option],
    size: str | None,
    *,
    repeat: int,
    seed: int,
) -> tuple[list[Prediction], Check]:
    """What the options got or would get, and how well the model repeats the measured flow.

    Nothing is predicted with a model that does not repeat it. What was measured remains. With
    another `size` the measured loads are no measurement of the transfer.

    Raises:
        InputError: the model does not repeat the measured flow, and nothing else was measured.
    """
    if measured.flow is None:
        raise InputError(f"{measured.source}: it has no flow to compare with; give a capture")
    checked = check(measured.path, measured.flow)
    loads = measured.loads if size is None else ()
    if (refusal := checked.refusal) and not loads:
        raise InputError(
            f"{measured.source}: no advice: {refusal}. Give a longer capture made at the sender, "
            "or results of weir test HOST --cc cubic,bbr, which measures in place of predicting"
        )
    if checked.refusal:
        return measured_alone(loads), checked
    work = workload_of(measured.flow, size)
    found = predict(measured, checked, options, work, repeat=repeat, seed=seed)
    return outranked(found, loads), checked


def outranked(found: Sequence[Prediction], loads: Sequence[Load]) -> list[Prediction]:
    """The options, with measured values where a controller was measured as it is.

    What was measured stands for itself: no model is part of it.
    """
    by_name = {load.stack: load for load in loads}
    return ranked(
        [
            _measured(one, by_name[one.option.name], loads) if one.option.name in by_name else one
            for one in found
        ]
    )


def measured_alone(loads: Sequence[Load]) -> list[Prediction]:
    """The same without any prediction."""
    options = [Option(load.stack, {}, AS_MEASURED) for load in loads]
    nothing = [Prediction(option, None, None, None, None, None) for option in options]
    return outranked(nothing, loads)


def _measured(one: Prediction, load: Load, loads: Sequence[Load]) -> Prediction:
    first = loads[0]
    is_first = load is first
    spread = _spread([each.goodputs_mbps for each in loads])
    delays = _spread([each.rtts_ms_p95 for each in loads])
    gain = Quantity(1.0, 1.0, 1.0) if is_first else _ratio(load, first, spread)
    runs = len(load.goodputs_mbps) if is_first else min(map(_runs, (load, first)))
    return replace(
        one,
        goodput_mbps=_interval(load.goodputs_mbps, spread),
        rtt_ms_p95=_interval(load.rtts_ms_p95, delays) or one.rtt_ms_p95,
        fct_s=None,
        gain=gain,
        runs=runs,
    )


def _runs(load: Load) -> int:
    return len(load.goodputs_mbps)


def _spread(groups: Sequence[Sequence[float]]) -> Spread:
    """The spread within all groups: each has few runs, and they vary alike (pooled variance)."""
    logs = [[math.log(value) for value in group if value > 0] for group in groups]
    freedom = sum(max(len(group) - 1, 0) for group in logs)
    squares = math.fsum((x - mean(group)) ** 2 for group in logs if group for x in group)
    return freedom, math.sqrt(squares / freedom) if freedom else math.inf


def _interval(values: Sequence[float], spread: Spread) -> Quantity | None:
    """The mean of runs, and the interval of that mean; unbounded with one run each."""
    known = [value for value in values if value > 0]
    if not known:
        return None
    centre = math.exp(mean(math.log(value) for value in known))
    return _around(centre, spread, 1 / len(known))


def _ratio(load: Load, first: Load, spread: Spread) -> Quantity:
    middles = [math.exp(mean(map(math.log, one.goodputs_mbps))) for one in (load, first)]
    return _around(middles[0] / middles[1], spread, 1 / _runs(load) + 1 / _runs(first))


def _around(value: float, spread: Spread, share: float) -> Quantity:
    freedom, deviation = spread
    if not freedom:
        return Quantity(value, 0.0, math.inf)
    half = t_quantile(freedom) * deviation * math.sqrt(share)
    return Quantity(value, value * math.exp(-half), value * math.exp(half))
