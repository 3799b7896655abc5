"""transperf's scores, from 0 to 100 (google/transperf, `default_target_score`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import polars as pl

from weir.conform.measures.observed import Observed
from weir.dynamics import convergence

__all__ = [
    "score_convergence",
    "score_fairness",
    "score_goodput",
    "score_lock_on",
    "score_loss",
    "score_rtt",
    "worst_rtt_ms",
]

_GRACE_S = 4.0
"""Time from which fairness is required: its `convergence_sec`."""
_BUCKET_S = 1.0


def score_goodput(run: Observed, *, mbps: float) -> float:
    """100 · goodput of all flows / rate of the link, since the first flow began."""
    since = min(curve.start_s for curve in run.curves)
    until = max(curve.seen_s for curve in run.curves)
    delivered = math.fsum(float(curve.delivered(until)) for curve in run.curves)
    return 100 * delivered / (until - since) / mbps


def score_rtt(run: Observed) -> float | None:
    """100 · smallest / median RTT, of the flow that has the least of it."""
    pairs = [(flow["rtt_ms_min"], flow["rtt_ms_p50"]) for flow in run.flows]
    return _worst([100 * low / mid if low and mid else None for low, mid in pairs], min)


def score_lock_on(run: Observed, *, mbps: float) -> float | None:
    """100 · delivery rate at the end of STARTUP / fair share, of the flow with the least."""
    is_startup = pl.col("phase").cast(pl.String) == "startup"
    rows = run.all_samples.filter(is_startup, pl.col("delivery_mbps").is_not_null())
    last = rows.group_by("flow").agg(pl.col("delivery_mbps").sort_by("t_s").last())
    if last.height < len(run.flows):
        return None
    return 100 * float(last["delivery_mbps"].to_numpy().min()) * len(run.flows) / mbps


def score_loss(run: Observed) -> float | None:
    """100 · (1 - retransmitted / sent), of the flow with the least."""
    shares = [flow["retransmit_ratio"] for flow in run.flows]
    return _worst([None if share is None else 100 * (1 - share) for share in shares], min)


def score_fairness(run: Observed) -> float | None:
    """100 · Jain's index per second, mean after the grace."""
    found = _jain(run)
    return None if found is None else 100 * found[0]


def score_convergence(run: Observed) -> float | None:
    """The same in the worst second."""
    found = _jain(run)
    return None if found is None else 100 * found[1]


def worst_rtt_ms(run: Observed) -> float | None:
    """The median RTT of the flow that waits longest."""
    return _worst([flow["rtt_ms_p50"] for flow in run.flows], max)


def _jain(run: Observed) -> tuple[float, float] | None:
    until = min(curve.seen_s for curve in run.curves)
    return convergence.jain_since(run.curves, _GRACE_S, until, bin_s=_BUCKET_S)


def _worst(values: Sequence[float | None], of: Callable[[Sequence[float]], float]) -> float | None:
    known = [value for value in values if value is not None]
    return of(known) if len(known) == len(values) else None
