"""transperf's scores, and what nsperf makes of its tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import polars as pl

from weir import dynamics
from weir.curves import Curve
from weir.results import Results
from weir.studies import Cell
from weir.studies.envelopes import Envelope, judged
from weir.studies.schemes import END_TO_END, KINDS, present

__all__ = ["END_TO_END", "KINDS", "present"]

PACKET = 1514
"""Packets of a bandwidth-delay product have this many bytes, as in transperf."""

RATE_MBPS = 50.0
RTT_MS = 40.0
GRACE_S = 4.0
"""Time from which fairness is required: its `convergence_sec`."""

_BUCKET_S = 1.0
_STARTUP = "startup"
_POINTS = (0.0, 100.0)

Rows = pl.DataFrame
Test = Mapping[str, Any]
"""One of the description's tests."""


def queue_packets(test: Test) -> int:
    """A buffer in whole packets, as transperf's `bdp` computes it."""
    bdps = float(test["bdps"])
    return max(1, round(bdps * RATE_MBPS * 1e6 * RTT_MS * 1e-3 / (8 * PACKET)))


def network(test: Test) -> str:
    """What is run: tests of one network that differ in their scores share their runs."""
    limit = f", policer {test['policer_mbps']:g} Mbit/s" if "policer_mbps" in test else ""
    return f"{test['flows']} x {queue_packets(test)}p{limit}"


def _rate_mbps(test: Test) -> float:
    """What goodput is compared with: the link's rate or the policer's."""
    return float(test.get("policer_mbps", RATE_MBPS))


def highest_rtt_ms(test: Test) -> float:
    """1.1 times the round trip behind a full buffer."""
    return 1.1 * (RTT_MS + queue_packets(test) * PACKET * 8 / (RATE_MBPS * 1e3))


@lru_cache(maxsize=2)
def _by_label(results: Results) -> dict[str, Rows]:
    labels = results.runs.filter(status="ok").select("run", "label")
    flows = results.flows.join(labels, on="run").partition_by("label", as_dict=True)
    return {str(name): own for (name,), own in flows.items()}


@lru_cache(maxsize=2)
def _startups(results: Results) -> dict[tuple[int, int], float]:
    """By run and flow: the delivery rate as a control with a phase `startup` leaves it."""
    runs = results.runs.filter(pl.col("label").str.starts_with("transperf"), status="ok")
    own = runs.select("run").lazy()
    last = (
        results.scan("samples")
        .join(own, on="run")
        .filter(pl.col("phase").cast(pl.String) == _STARTUP, pl.col("delivery_mbps").is_not_null())
        .sort("run", "flow", "t_s")
        .group_by("run", "flow", maintain_order=True)
        .agg(pl.col("delivery_mbps").last())
        .collect()
    )
    return {(run, flow): rate for run, flow, rate in last.iter_rows()}


def scores(results: Results, test: Test, stack: str) -> Iterator[Cell]:
    """Every score that a test asks for, of one control."""
    table, label = f"transperf, {test['name']}", f"transperf {network(test)}, {stack}"
    if label not in _by_label(results):
        return
    runs = _by_label(results)[label].partition_by("run", maintain_order=True)
    for name, least in test["scores"].items():
        values = [_SCORES[name](results, test, own) for own in runs]
        if name == "lock_on_bw" and None in values:
            continue  # only a control with a STARTUP locks on
        yield judged((table, stack, name, ""), values, Envelope(least), bounds=_POINTS)
    if "policer_mbps" not in test:
        # Not a score: its check that the median RTT is below 1.1 times that of a full buffer.
        medians = [_worst(own["rtt_ms_p50"], max) for own in runs]
        place = table, stack, "median RTT, ms", ""
        yield judged(place, medians, Envelope(high=highest_rtt_ms(test)))


def _tput(results: Results, test: Test, own: Rows) -> float:
    """100 · goodput of all / rate of the link, since the first flow began."""
    curves = _curves(results, own)
    since, until = min(c.start_s for c in curves), max(c.seen_s for c in curves)
    delivered = math.fsum(float(c.delivered(until)) for c in curves)
    return 100 * delivered / (until - since) / _rate_mbps(test)


def _rtt(_: Results, __: Test, own: Rows) -> float | None:
    """100 · smallest / median RTT, of the flow that has the least of it."""
    return _worst(100 * own["rtt_ms_min"] / own["rtt_ms_p50"], min)


def _lock_on(results: Results, test: Test, own: Rows) -> float | None:
    """100 · delivery rate at the end of STARTUP / fair share, of the flow with the least."""
    starts = _startups(results)
    found = [starts.get((run, flow)) for run, flow in own.select("run", "flow").iter_rows()]
    known = [rate for rate in found if rate is not None]
    if len(known) < len(found):
        return None
    return 100 * min(known) * int(test["flows"]) / _rate_mbps(test)


def _loss(_: Results, __: Test, own: Rows) -> float | None:
    """100 · (1 − retransmitted / sent), of the flow with the least."""
    return _worst(100 * (1 - own["retransmit_ratio"]), min)


def _fairness(results: Results, _: Test, own: Rows) -> float | None:
    """100 · Jain's index per second, mean after the grace."""
    found = _jain(results, own)
    return None if found is None else 100 * found[0]


def _convergence(results: Results, _: Test, own: Rows) -> float | None:
    """The same in the worst second."""
    found = _jain(results, own)
    return None if found is None else 100 * found[1]


def _jain(results: Results, own: Rows) -> tuple[float, float] | None:
    curves = _curves(results, own)
    until = min(curve.seen_s for curve in curves)
    return dynamics.jain_since(curves, GRACE_S, until, bin_s=_BUCKET_S)


def _curves(results: Results, own: Rows) -> list[Curve]:
    return results.curves[int(own["run"][0])]


def _worst(values: pl.Series, of: Callable[[Sequence[float]], float]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return of(known) if len(known) == len(values) else None


_SCORES: Mapping[str, Callable[[Results, Test, Rows], float | None]] = {
    "tput": _tput,
    "rtt_med": _rtt,
    "lock_on_bw": _lock_on,
    "loss_avoid": _loss,
    "fairness": _fairness,
    "convergence_fairness": _convergence,
}

# nsperf.


def _share(own: Rows) -> float | None:
    """What the control has beside CUBIC."""
    named = dict(own.select("name", "goodput_mbps").iter_rows())
    total = math.fsum(named.values())
    return named["own"] / total if total else None


def _goodput(own: Rows) -> float | None:
    return float(own["goodput_mbps"].sum())


def _retransmitted(own: Rows) -> float | None:
    """In percent of all segments sent."""
    sent, again = (int(own[name].sum()) for name in ("sent_segments", "retransmits"))
    return 100 * again / sent if sent else None


def _median_rtt(own: Rows) -> float | None:
    """Of the flow that waits longest: percentiles of several flows cannot be joined."""
    return _worst(own["rtt_ms_p50"], max)


def _p95_rtt(own: Rows) -> float | None:
    return _worst(own["rtt_ms_p95"], max)


def _jain_index(own: Rows) -> float | None:
    rates = [float(rate) for rate in own["goodput_mbps"]]
    squares = math.fsum(rate * rate for rate in rates)
    return math.fsum(rates) ** 2 / (len(rates) * squares) if squares else None


_ASKED: Mapping[str, Callable[[Rows], float | None]] = {
    "share": _share,
    "goodput": _goodput,
    "retransmitted": _retransmitted,
    "median_rtt": _median_rtt,
    "p95_rtt": _p95_rtt,
    "jain": _jain_index,
}


def asked(results: Results, label: str, quantity: str) -> list[float | None] | None:
    """What nsperf makes of each run of a case; None where the case was not run."""
    own = _by_label(results).get(label)
    if own is None:
        return None
    return [_ASKED[quantity](run) for run in own.partition_by("run", maintain_order=True)]
