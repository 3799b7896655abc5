"""The expressions of `weir search`, for cases that it has written."""

from __future__ import annotations

from weir.conform.measures.observed import Observed
from weir.search.expressions import Expression, Observation

__all__ = ["expression"]


def expression(run: Observed, *others: Observed, text: str) -> float | None:
    """An expression over the metrics of a run; `old(…)` is about the reference."""
    old = next((_seen(other) for other in others), None)
    return Expression.parse(text).value(_seen(run, old))


def _seen(run: Observed, old: Observation | None = None) -> Observation:
    return Observation(run.flows, run.link, run.whole(), {}, old)
