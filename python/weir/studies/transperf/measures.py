"""The cells of the study: scores with their verdicts, and what nsperf prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import polars as pl

from weir import dynamics
from weir.curves import Curve
from weir.results import Results
from weir.stats import Bounds, Estimate, mean_interval
from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Extent
from weir.studies.envelopes import Envelope, judged
from weir.studies.transperf import nsperf
from weir.studies.transperf.experiment import label, size_of
from weir.studies.transperf.scored import (
    CONVERGENCE,
    FAIRNESS,
    FULL_QUEUE,
    GRACE_S,
    LOCK_ON,
    LOSS,
    RTT,
    TESTS,
    TPUT,
    WITH_FULL_QUEUE,
    Test,
)

SCORES = "transperf"
_BUCKET_S = 1.0
_STARTUP = "startup"
_POINTS = (0.0, 100.0)

Rows = pl.DataFrame


def scores_table(test: Test) -> str:
    """The name of a table."""
    return f"{SCORES}, {test.name}"


def nsperf_table(test: str, what: str) -> str:
    """The name of a table."""
    return f"nsperf {test}, {what}"


def study_cells(results: Results, extent: Extent) -> list[Cell]:
    """Every cell."""
    labels = results.runs.filter(status="ok").select("run", "label")
    flows = results.flows.join(labels, on="run").partition_by("label", as_dict=True)
    by_label = {str(name): own for (name,), own in flows.items()}
    starts = _startups(results, labels)
    found = [
        scored
        for test in TESTS
        for stack in extent.stacks
        if label(test, stack) in by_label
        for scored in _scores(results, test, stack, by_label[label(test, stack)], starts)
    ]
    return [*found, *_nsperf(by_label, extent)]


# transperf.


def _startups(results: Results, labels: Rows) -> dict[tuple[int, int], float]:
    """By run and flow: the delivery rate as a control with a phase `startup` leaves it."""
    own = labels.filter(pl.col("label").str.starts_with(SCORES)).select("run").lazy()
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


def _scores(
    results: Results,
    test: Test,
    stack: str,
    flows: Rows,
    starts: Mapping[tuple[int, int], float],
) -> Iterator[Cell]:
    """Every score that a test asks for, of one control."""
    table = scores_table(test)
    runs = flows.partition_by("run", maintain_order=True)
    for name, least in test.scores.items():
        values = [_SCORES[name](results, test, own, starts) for own in runs]
        if name == LOCK_ON and None in values:
            continue  # only a control with a STARTUP locks on
        yield judged((table, stack, name, ""), values, Envelope(least), bounds=_POINTS)
    if test in WITH_FULL_QUEUE:
        medians = [_worst(own["rtt_ms_p50"], max) for own in runs]
        yield judged((table, stack, FULL_QUEUE, ""), medians, Envelope(high=test.highest_rtt_ms))


def _tput(results: Results, test: Test, own: Rows, _: Mapping[tuple[int, int], float]) -> float:
    """100 · goodput of all / rate of the link, since the first flow began."""
    curves = _curves(results, own)
    since, until = min(c.start_s for c in curves), max(c.seen_s for c in curves)
    delivered = math.fsum(float(c.delivered(until)) for c in curves)
    return 100 * delivered / (until - since) / test.rate_mbps


def _rtt(_: Results, __: Test, own: Rows, ___: Mapping[tuple[int, int], float]) -> float | None:
    """100 · smallest / median RTT, of the flow that has the least of it."""
    return _worst(100 * own["rtt_ms_min"] / own["rtt_ms_p50"], min)


def _lock_on(
    _: Results, test: Test, own: Rows, starts: Mapping[tuple[int, int], float]
) -> float | None:
    """100 · delivery rate at the end of STARTUP / fair share, of the flow with the least."""
    found = [starts.get((run, flow)) for run, flow in own.select("run", "flow").iter_rows()]
    known = [rate for rate in found if rate is not None]
    if len(known) < len(found):
        return None
    return 100 * min(known) * test.flows / test.rate_mbps


def _loss(_: Results, __: Test, own: Rows, ___: Mapping[tuple[int, int], float]) -> float | None:
    """100 · (1 − retransmitted / sent), of the flow with the least."""
    return _worst(100 * (1 - own["retransmit_ratio"]), min)


def _fairness(
    results: Results, _: Test, own: Rows, __: Mapping[tuple[int, int], float]
) -> float | None:
    """100 · Jain's index per second, mean after the grace."""
    found = _jain(results, own)
    return None if found is None else 100 * found[0]


def _convergence(
    results: Results, _: Test, own: Rows, __: Mapping[tuple[int, int], float]
) -> float | None:
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


_SCORES: Mapping[
    str, Callable[[Results, Test, Rows, Mapping[tuple[int, int], float]], float | None]
] = {
    TPUT: _tput,
    RTT: _rtt,
    LOCK_ON: _lock_on,
    LOSS: _loss,
    FAIRNESS: _fairness,
    CONVERGENCE: _convergence,
}

# nsperf.


def _share(own: Rows) -> float | None:
    """What the control has beside CUBIC."""
    named = dict(own.select("name", "goodput_mbps").iter_rows())
    total = math.fsum(named.values())
    return named[nsperf.OWN] / total if total else None


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


ASKED: Sequence[tuple[str, str, str, Callable[[Rows], float | None], Bounds]] = (
    (nsperf.COEXIST, "share beside CUBIC", "share", _share, (0.0, 1.0)),
    (nsperf.RANDOM_LOSS, "goodput", "Mbit/s", _goodput, (0.0, None)),
    (nsperf.SHALLOW, "sent again", "%", _retransmitted, (0.0, 100.0)),
    (nsperf.BUFFERBLOAT, "median RTT", "ms", _median_rtt, (0.0, None)),
    (nsperf.ECN_BULK, "median RTT", "ms", _median_rtt, (0.0, None)),
    (nsperf.ECN_BULK, "P95 RTT", "ms", _p95_rtt, (0.0, None)),
    (nsperf.ECN_BULK, "sent again", "%", _retransmitted, (0.0, 100.0)),
    (nsperf.ECN_BULK, "fairness", "Jain's index", _jain_index, (0.0, 1.0)),
)
"""What nsperf makes of each test."""


def _nsperf(by_label: Mapping[str, Rows], extent: Extent) -> Iterator[Cell]:
    size = size_of(extent)
    for test, what, unit, value_of, bounds in ASKED:
        for stack in nsperf.stacks_of(test):
            for value in size.values[test]:
                own = by_label.get(nsperf.label(test, stack, value))
                if own is None:
                    continue
                values = [value_of(run) for run in own.partition_by("run", maintain_order=True)]
                known = [number for number in values if number is not None]
                is_whole = len(known) == len(values)
                ours = mean_interval(known, bounds) if is_whole else _nothing(len(values))
                note = "" if is_whole else "too few samples in some run"
                place = nsperf_table(test, what), stack, nsperf.column(test, value), unit
                yield cell(*place, ours, note=note)


def _nothing(runs: int) -> Estimate:
    return Estimate(None, None, None, runs)
