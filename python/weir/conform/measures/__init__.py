"""Measures: functions from one run to a number, which the criteria name.

A measure receives an `Observed`, with `against` one more of the same seed per variant, and its
arguments by keyword. Times are in seconds, sizes in bytes, rates in Mbit/s. It returns None if the
run cannot be measured, infinity if an event did not happen. A yes or no is 1 or 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType

from weir.conform.measures import (
    dctcp,
    internal,
    phases,
    rates,
    recorded,
    recovery,
    scores,
    searched,
    shares,
    windows,
)

Measure = Callable[..., float | None]


def _public(module: ModuleType) -> dict[str, Measure]:
    return {name: getattr(module, name) for name in module.__all__}


MEASURES: Mapping[str, Measure] = {
    name: measure
    for module in (
        dctcp,
        internal,
        phases,
        rates,
        recorded,
        recovery,
        scores,
        searched,
        shares,
        windows,
    )
    for name, measure in _public(module).items()
}
"""Every measure by its name in the suites."""
