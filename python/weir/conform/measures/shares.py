"""Several flows or several scenarios, and columns of the tables `flows` and `links`."""

from __future__ import annotations

import math
from typing import Literal

from weir.conform.measures.observed import Observed
from weir.dynamics import convergence
from weir.dynamics.fairness import harm, jain

__all__ = [
    "completion_difference",
    "difference_of",
    "growth_of",
    "harm_difference",
    "jain_of_flows",
    "mark_rate_spread",
    "rate_ratio",
    "ratio_of",
    "share_of_flow",
    "value_of",
    "worst_jain",
]

Table = Literal["flow", "link"]


def value_of(
    run: Observed, *, table: Table = "flow", column: str, scale: float = 1.0
) -> float | None:
    """A column of the flow under test in `flows`, or of the bottleneck in `links`."""
    value = (run.flow if table == "flow" else run.link)[column]
    return None if value is None else value * scale


def difference_of(
    run: Observed, other: Observed, *, table: Table = "flow", column: str
) -> float | None:
    """The value of a column minus that of the reference run with the same seed."""
    own, theirs = (value_of(one, table=table, column=column) for one in (run, other))
    return None if own is None or theirs is None else own - theirs


def ratio_of(run: Observed, other: Observed, *, table: Table = "flow", column: str) -> float | None:
    """The value of a column over that of the reference run; infinite if that is 0 or missing."""
    own, theirs = (value_of(one, table=table, column=column) for one in (run, other))
    if own is None:
        return math.inf
    return None if not theirs else own / theirs


def harm_difference(shared: Observed, alone: Observed, bar: Observed) -> float | None:
    """The harm to the second flow in `shared`, minus that in `bar`.

    Harm (Ware et al., HotNets 2019) is the lost share of the goodput that it has in `alone`.
    """
    had = alone.flow["goodput_mbps"]
    left, usual = (run.flows[1]["goodput_mbps"] for run in (shared, bar))
    if had is None or left is None or usual is None:
        return None
    own, theirs = harm(had, left, "more"), harm(had, usual, "more")
    return None if own is None or theirs is None else own - theirs


def growth_of(run: Observed, *, column: str, from_s: float, to_s: float) -> float | None:
    """The growth of a counter in `samples` between two times."""
    values = run.column(column, from_s, to_s)
    return float(values[-1] - values[0]) if len(values) else None


def completion_difference(run: Observed, bar: Observed) -> float:
    """The mean completion time of all flows but the first, minus that in the reference run.

    It is infinite if one of them did not complete.
    """
    own, usual = _mean_completion(run), _mean_completion(bar)
    return math.inf if math.inf in (own, usual) else own - usual


def _mean_completion(run: Observed) -> float:
    times = [flow["fct_s"] for flow in run.flows[1:]]
    known = [time for time in times if time is not None]
    return math.fsum(known) / len(known) if len(known) == len(times) else math.inf


def rate_ratio(run: Observed) -> float:
    """The larger goodput of the first two flows over the smaller; infinite if one has none."""
    rates = sorted(flow["goodput_mbps"] or 0.0 for flow in run.flows[:2])
    return rates[1] / rates[0] if rates[0] else math.inf


def mark_rate_spread(*runs: Observed) -> float | None:
    """The most marks per round trip over the least, of runs at several rates."""
    found = [_marks_per_round(run) for run in runs]
    known = [marks for marks in found if marks is not None]
    if len(known) < len(found):
        return None
    return max(known) / min(known) if min(known) > 0 else math.inf


def _marks_per_round(run: Observed) -> float | None:
    marks, rtt_ms = run.link["marked"], run.flow["rtt_ms_mean"]
    if marks is None or not rtt_ms:
        return None
    # Counts cover the measured interval, which ends with the run.
    measured_s = run.curve.seen_s - run.warmup_s
    return marks * rtt_ms / 1e3 / measured_s


def share_of_flow(run: Observed, *, of: Literal["own", "others"] = "own") -> float | None:
    """The goodput of the flow under test, or of all others, over that of all."""
    rates = [flow["goodput_mbps"] or 0.0 for flow in run.flows]
    total = math.fsum(rates)
    own = rates[0] if of == "own" else total - rates[0]
    return own / total if total else None


def jain_of_flows(run: Observed) -> float | None:
    """Jain's index over the goodputs of all flows."""
    return jain([flow["goodput_mbps"] or 0.0 for flow in run.flows])


def worst_jain(run: Observed, *, from_s: float, bin_s: float) -> float | None:
    """The smallest of Jain's indices per bin from `from_s` on."""
    until_s = min(curve.seen_s for curve in run.curves)
    found = convergence.jain_since(run.curves, from_s, until_s, bin_s=bin_s)
    return None if found is None else found[1]
