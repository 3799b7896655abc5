"""What happened whenever a flow came or went: one record per change, run by run and over repeats.

The functions of `dynamics` ask one question about one pair of instants; here is what a report and
`--json` ask of every change of every run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from weir.dynamics import fairness
from weir.dynamics.convergence import Epoch, convergence, epochs, jain_since, reclaim
from weir.dynamics.criteria import COARSE_BIN_S, HOLD_S
from weir.dynamics.curves import Curve
from weir.statistics.censoring import Wait, Waits, summarised
from weir.statistics.intervals import Estimate, mean_interval


@dataclass(frozen=True)
class Change:
    """Flows that came or went together in one run, and the epoch until the next change."""

    joined: tuple[str, ...]
    left: tuple[str, ...]
    epoch: Epoch


@dataclass(frozen=True)
class Observed:
    """One change over the repeats of a case."""

    joined: tuple[str, ...]
    left: tuple[str, ...]
    at_s: float
    """When the last of them came or went, mean over the repeats."""
    converged: Mapping[float, Waits]
    """By the width of the bins; empty with fewer than two flows."""
    reclaimed: Mapping[float, Waits]
    """By the width of the bins; empty if no flow ended."""
    jain: Estimate
    """Of the goodputs until the next change."""
    newcomers: Estimate
    """The part of all that is delivered until then that those who joined have."""

    @property
    def event(self) -> str:
        """In words: `guest starts`."""
        parts = []
        for names, one, many in ((self.joined, "starts", "start"), (self.left, "ends", "end")):
            if names:
                parts.append(f"{_listed(names)} {one if len(names) == 1 else many}")
        return ", ".join(parts)

    def as_json(self) -> dict[str, object]:
        """The form that `--json` outputs use."""
        return {
            "joined": list(self.joined),
            "left": list(self.left),
            "at_s": round(self.at_s, 6),
            "convergence": [{"bin_s": b, **w.as_json()} for b, w in self.converged.items()],
            "reclaim": [{"bin_s": b, **w.as_json()} for b, w in self.reclaimed.items()],
            "jain_index": self.jain.as_json(),
            "newcomers_share": self.newcomers.as_json(),
        }


def changes(flows: Sequence[Curve]) -> list[Change]:
    """The changes of one run; flows that come or go within a second are one, at its end."""
    found = []
    joined: list[str] = []
    left: list[str] = []
    for epoch in epochs(flows):
        joined += [flow.name for flow in epoch.joined]
        left += [flow.name for flow in epoch.left]
        if epoch.seconds >= COARSE_BIN_S:
            found.append(Change(tuple(sorted(joined)), tuple(sorted(left)), epoch))
            joined, left = [], []
    return found


def observed(runs: Sequence[Sequence[Curve]], bins_s: Sequence[float]) -> list[Observed]:
    """Every start or end of a flow next to others, over the repeats of one case.

    Those that are followed by the next within 5 s are left out: nothing can be held for so long.
    """
    together: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Change]] = {}
    for flows in runs:
        for change in changes(flows):
            if change.epoch.seconds >= HOLD_S and (len(change.epoch.active) > 1 or change.left):
                together.setdefault((change.joined, change.left), []).append(change)
    return [_observed(own, bins_s) for own in together.values()]


def per_run(curves: Mapping[int, Sequence[Curve]]) -> pl.DataFrame:
    """By run, Jain's index over the time that all flows share, and since they converged in it.

    Columns `run`, `jain_index_common`, `jain_index_converged_mean`, `jain_index_converged_min`, the
    last two over bins of 1 s; null where there is no such time, or the flows did not converge.
    """
    rows = [(run, *_jains(flows)) for run, flows in curves.items()]
    names = ("common", "converged_mean", "converged_min")
    schema = {"run": pl.UInt32, **{f"jain_index_{name}": pl.Float64 for name in names}}
    return pl.DataFrame(rows, schema, orient="row")


def _jains(flows: Sequence[Curve]) -> tuple[float | None, float | None, float | None]:
    start_s = max((flow.start_s for flow in flows), default=0.0)
    end_s = min((flow.seen_s for flow in flows), default=0.0)
    if len(flows) < 2 or end_s <= start_s:
        return None, None, None
    common = fairness.jain([flow.rate(start_s, end_s) for flow in flows])
    bin_s = max(COARSE_BIN_S, *(flow.interval_s for flow in flows))
    wait = convergence(flows, start_s, end_s, bin_s=bin_s)
    if wait.time_s is None:
        return common, None, None
    mean, least = jain_since(flows, start_s + wait.time_s, end_s, bin_s=bin_s) or (None, None)
    return common, mean, least


def _observed(own: Sequence[Change], bins_s: Sequence[float]) -> Observed:
    first, together = own[0], [c.epoch for c in own if len(c.epoch.active) > 1]
    return Observed(
        first.joined,
        first.left,
        sum(change.epoch.start_s for change in own) / len(own),
        {b: _converged(together, b) for b in bins_s if together},
        {b: _reclaimed(own, b) for b in bins_s if first.left and not first.joined},
        mean_interval([_jain(epoch) for epoch in together], (0.0, 1.0)),
        mean_interval([_newcomers(change) for change in own if first.joined], (0.0, 1.0)),
    )


def _converged(together: Sequence[Epoch], bin_s: float) -> Waits:
    return summarised(convergence(e.active, e.start_s, e.end_s, bin_s=bin_s) for e in together)


def _reclaimed(own: Sequence[Change], bin_s: float) -> Waits:
    def wait(epoch: Epoch) -> Wait | None:
        return reclaim(epoch.active, epoch.left, epoch.start_s, epoch.end_s, bin_s=bin_s)

    return summarised(wait(change.epoch) for change in own)


def _jain(epoch: Epoch) -> float | None:
    return fairness.jain([flow.rate(epoch.start_s, epoch.end_s) for flow in epoch.active])


def _newcomers(change: Change) -> float | None:
    epoch = change.epoch
    shares = [
        fairness.share(flow, epoch.active, epoch.start_s, epoch.end_s)
        for flow in epoch.active
        if flow.name in change.joined
    ]
    present = [share for share in shares if share is not None]
    return sum(present) if present and len(shares) < len(epoch.active) else None


def _listed(names: Sequence[str]) -> str:
    if len(names) > 3:
        return f"{len(names)} flows"
    return " and ".join(names)
