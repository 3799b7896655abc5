"""The metrics of recorded runs of Linux, as `weir validate` defines them."""

from __future__ import annotations

from weir.conform.measures.observed import Observed
from weir.recordings.reduce import reduce
from weir.recordings.truth import Flow

__all__ = ["as_recorded"]


def as_recorded(run: Observed, *, metric: str, start_s: float, duration_s: float) -> float | None:
    """A metric of the flow under test, which runs for `duration_s` from `start_s` on."""
    (values,) = reduce([run.samples], [Flow("", start_s, duration_s)], run.mss)
    return values[metric]
