"""Paths that repeat the measured flow, from all that the estimates allow.

Estimates one by one leave paths open on which the measured flow would have got something else:
a rate of which only a lower bound is known, a loss whose share has a wide interval. Each drawn path
carries the measured flow in a simulation, and those that repeat it best remain (rejection sampling,
Beaumont, Zhang and Balding, Genetics 2002).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from weir.estimates.draws import draw
from weir.estimates.path import Path
from weir.modelling.measured import Flow
from weir.modelling.simulate import Job, measured_keys, run_all


@dataclass(frozen=True)
class Drawn:
    """A path, and the seed of the random events on it."""

    path: Path
    seed: int
    off: float
    """By which factor, as a logarithm, the goodput of the measured flow differs on it."""
    distance: float
    """The same of goodput and round trips together."""


def conditioned(path: Path, flow: Flow, number: int, seed: int) -> list[Drawn]:
    """Returns `number` paths within the estimates on which the flow does what was measured."""
    drawn = draw(path, number * _TRIED, seed)
    keys = _UNSAMPLED
    jobs = [
        Job({**measured_keys(one, flow), **keys}, seed + n, others=one.cross_flows())
        for n, one in enumerate(drawn)
    ]
    tables = run_all(jobs)
    found = [
        _compared(one, seed + n, table["flows"].row(0, named=True), flow)
        for n, (one, table) in enumerate(zip(drawn, tables, strict=True))
    ]
    return sorted(found, key=lambda one: one.distance)[:number]


def typical_miss(found: Sequence[Drawn]) -> float:
    """By how much the measured flow differs on the paths, as a logarithm."""
    return median(one.off for one in found)


def _compared(path: Path, seed: int, row: dict[str, float | None], flow: Flow) -> Drawn:
    errors = [_error(row[name], getattr(flow, name)) for name in _COMPARED]
    return Drawn(path, seed, errors[0], math.hypot(*errors))


def _error(simulated: float | None, measured: float) -> float:
    """A logarithm of their ratio; a run without a value is as far off as may be."""
    if not measured:
        return 0.0
    return abs(math.log(simulated / measured)) if simulated else _FAR


_COMPARED = ("goodput_mbps", "rtt_ms_p50", "rtt_ms_p95")
_TRIED = 4
"""Paths that are drawn for each that remains."""
_FAR = 10.0
_UNSAMPLED = {"measure.sample_interval": "0s"}
