"""The newest flow of a staggered test: how fast it is let in, and its bandwidth taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from weir.cells.cells import cell
from weir.cells.protocol import Cell
from weir.dynamics import convergence, criteria
from weir.dynamics.curves import Curve, curves
from weir.experiments.staggered import Timing
from weir.results.results import Results
from weir.statistics.censoring import Wait, Waits, summarised
from weir.statistics.intervals import Estimate, mean_interval

_BIN_S = 1.0
"""The width of a bin in a test of 60 s; at 40 ms and one BDP of buffer a second is a dozen round
trips, and more than a sawtooth of Reno at 10 Mbit/s."""

_RECLAIM_HOLD_S = 2.5
"""Half of the usual time: in the 3-flow test the next flow leaves six seconds after the newest."""


@dataclass(frozen=True)
class Join:
    """The newest flow of a test in one run: `flows` are those that send while it does."""

    flows: Sequence[Curve]
    newest: Curve
    timing: Timing

    @property
    def _ends_s(self) -> float:
        return self.newest.seen_s

    @property
    def _middle_s(self) -> float:
        return (self.newest.start_s + self._ends_s) / 2

    def adapts(self) -> Wait:
        """ε-convergence."""
        return convergence.convergence(
            self.flows,
            self.newest.start_s,
            self._ends_s,
            bin_s=_BIN_S * self.timing.scale,
            hold_s=criteria.HOLD_S * self.timing.scale,
        )

    def crosses(self) -> Wait:
        """Until the newest has more than the first."""
        bin_s = _BIN_S / 2 * self.timing.scale
        return convergence.crossing(self.flows[0], self.newest, self._ends_s, bin_s=bin_s)

    def reclaims(self) -> Wait | None:
        """Until the others have what it leaves; None where it does not leave before the end."""
        if self.newest.left_s is None:
            return None
        others = [flow for flow in self.flows if flow is not self.newest]
        until = min(flow.seen_s for flow in others)
        scale = self.timing.scale
        return convergence.reclaim(
            others,
            [self.newest],
            self.newest.left_s,
            until,
            bin_s=_BIN_S / 2 * scale,
            hold_s=_RECLAIM_HOLD_S * scale,
        )

    def share(self) -> float | None:
        """Of the newest, over the second half of its time."""
        rates = [flow.rate(self._middle_s, self._ends_s) for flow in self.flows]
        return rates[-1] / sum(rates) if sum(rates) else None

    def jain(self) -> float | None:
        """Of all, over the same time."""
        bin_s = _BIN_S * self.timing.scale
        found = convergence.jain_since(self.flows, self._middle_s, self._ends_s, bin_s=bin_s)
        return None if found is None else found[0]


def joins(results: Results, label: str, timing: Timing) -> list[Join]:
    """The newest flow of each run of a case."""
    runs = results.runs.filter(label=label, status="ok")["run"].implode()
    samples = results.scan("samples").filter(pl.col("run").is_in(runs)).collect()
    flows = results.flows.filter(pl.col("run").is_in(runs))
    count = len(timing.flows)
    found = curves(samples, flows).values()
    return [Join(own, own[-1], timing) for own in found if len(own) == count]


def wait_cell(place: tuple[str, str, str], waits: Sequence[Wait | None], done: str) -> Cell:
    """Times until something happened; with no mean, and a note, where it did not in some repeat.

    `done` says what happened, as in `3 of 5 converged`.
    """
    found: Waits = summarised(waits)
    times = [wait.time_s for wait in waits if wait is not None]
    all_ended = found.n > 0 and found.ended == found.n
    ours = mean_interval(times, (0.0, None)) if all_ended else Estimate(None, None, None, found.n)
    note = "" if all_ended else found.words(done)
    return cell(*place, "s", ours, note=note, ended=found.ended, median_s=found.median_s)
