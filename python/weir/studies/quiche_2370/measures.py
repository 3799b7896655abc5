"""Transfers that took long, and how long the others took."""

from __future__ import annotations

from collections.abc import Iterable

from weir.statistics.intervals import Estimate, mean_interval, share_interval

LIMIT_S = 10.0
"""The limit of the report. Runs end after 12 s: what is incomplete then took longer too."""


def times(waits: Iterable[float | None]) -> list[float]:
    """Completion times within the limit."""
    return [time for time in waits if time is not None and time <= LIMIT_S]


def late_percent(waits: Iterable[float | None]) -> Estimate:
    """The share of transfers over the limit, in per cent."""
    all_ = list(waits)
    share = share_interval(len(all_) - len(times(all_)), len(all_))
    if share.mean is None or share.lo is None or share.hi is None:
        return share
    return Estimate(100 * share.mean, 100 * share.lo, 100 * share.hi, share.n)


def in_time(waits: Iterable[float | None]) -> Estimate:
    """The mean completion time of the others."""
    return mean_interval(times(waits), (0.0, None))
