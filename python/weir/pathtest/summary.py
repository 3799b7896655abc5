"""The results of a path test in sentences, and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from weir.base.grid import Grid, cautioned, listed, number
from weir.comparison.tables import estimate_text
from weir.probes.responsiveness import in_words
from weir.results import metrics
from weir.results.results import Results

_COLUMNS = (
    ("goodput_mbps", "goodput, Mbit/s"),
    ("idle_rtt_ms_p50", "RTT idle, ms"),
    ("loaded_rtt_ms_p50", "RTT loaded, ms"),
    ("loaded_rtt_ms_p95", "P95"),
    ("loaded_rtt_ms_p99", "P99"),
    ("responsiveness_rpm", "RPM"),
    ("retransmit_ratio", "retransmitted, %"),
    ("loss_ratio", "lost, %"),
    ("jitter_ms", "jitter, ms"),
    ("policer_mbps", "policer, Mbit/s"),
)


def verdict(results: Results, host: str) -> str:
    """One sentence: the rate in each direction, and what the load does to the round-trip time."""
    best = [
        best
        for direction in ("up", "down", "both")
        if (best := _best(results, direction)) is not None
    ]
    if not best:
        return f"{host}: no run succeeded."
    rates = listed([f"{number(_mean(results, c, 'goodput_mbps'))} Mbit/s {_way(c)}" for c in best])
    worst = max(best, key=lambda case: _mean(results, case, "loaded_rtt_ms_p50") or 0.0)
    idle, loaded = (
        _mean(results, worst, name) for name in ("idle_rtt_ms_p50", "loaded_rtt_ms_p50")
    )
    text = f"{host}: {rates}"
    if idle is not None and loaded is not None:
        text += (
            f"; the RTT is {number(idle)} ms idle and {number(loaded)} ms under load {_way(worst)}"
        )
    rpm = min(
        (value for c in best if (value := _mean(results, c, "responsiveness_rpm"))), default=None
    )
    if rpm is not None:
        text += f"; responsiveness {rpm:.0f} RPM ({in_words(rpm)})"
    policed = [
        f"{number(value)} Mbit/s {_way(case)}"
        for case in results.cases
        if (value := _mean(results, case, "policer_mbps")) is not None
    ]
    if policed:
        text += f"; a policer drops packets above {listed(policed)}"
    return f"{text}."


def grid(results: Results) -> Grid:
    """One row per load and direction."""
    measured = {metric.name for metric in results.measured()}
    if set(results.flows["stack"]) == {"udp"}:
        measured.discard("retransmit_ratio")
    columns = [(name, title) for name, title in _COLUMNS if name in measured]
    rows = [
        [
            case["series"],
            case["point"]["direction"],
            *(
                estimate_text(results.estimate(case["label"], name), metrics.BY_NAME[name])
                for name, _ in columns
            ),
        ]
        for case in results.cases
    ]
    repeats = results.manifest["repeat"]
    spread = f"mean ± 95 % interval over {repeats} repeats" if repeats > 1 else "one run each"
    note = (
        "Up is to the server. Goodput: data received per time, without headers. RTT: of probes "
        "next to the load."
    )
    title = cautioned(f"Path test, {spread}", results.caution)
    headers = ["load", "direction", *(title for _, title in columns)]
    note += _queues(results) + _marks(results) + _limits(results) + _health(results)
    return Grid(title, headers, rows, names=2, note=note)


def _queues(results: Results) -> str:
    """The direction in which the queue was, for which no common clock is needed."""
    texts = []
    for direction, name in (("up", "queue_up_ms_p50"), ("down", "queue_down_ms_p50")):
        medians = [v for c in results.cases if (v := _mean(results, c, name)) is not None]
        if medians:
            texts.append(f"{number(max(medians))} ms {direction}")
    return f" Largest median queueing delay: {', '.join(texts)}." if texts else ""


def _marks(results: Results) -> str:
    """What the path does to ECN and DSCP, in the words of most runs."""
    texts = []
    for kind in ("ecn", "dscp"):
        ways = {direction: _usual(results, f"{kind}_{direction}") for direction in ("up", "down")}
        if len(set(ways.values())) == 1:
            ways = {"both ways": ways["up"]}
        texts += [f"{kind.upper()} {direction}: {text}" for direction, text in ways.items() if text]
    return f" {'; '.join(texts)}." if texts else ""


def _limits(results: Results) -> str:
    """What limited flows of our transport."""
    texts = []
    for case in results.cases:
        found = _usual(results, "limit", case["label"])
        if found:
            texts.append(f"{case['series']} {case['point']['direction']}: {found}")
    return f" Limited by: {'; '.join(texts)}." if texts else ""


def _usual(results: Results, column: str, label: str | None = None) -> str | None:
    """The most frequent text of a column of table `runs`."""
    runs = results.runs if label is None else results.runs.filter(pl.col("label") == label)
    counts = runs[column].drop_nulls().value_counts(sort=True)
    return None if counts.is_empty() else str(counts[column][0])


def _health(results: Results) -> str:
    health: Mapping[str, Any] = results.manifest["health"]
    warnings = health.get("warnings")
    return f" Health {health['verdict']}, the first: {warnings[0]}." if warnings else ""


def _best(results: Results, direction: str) -> dict[str, Any] | None:
    """The case with the highest goodput in a direction."""
    cases = [case for case in results.cases if case["point"]["direction"] == direction]
    known = [case for case in cases if _mean(results, case, "goodput_mbps") is not None]
    return max(known, key=lambda case: _mean(results, case, "goodput_mbps") or 0.0, default=None)


def _mean(results: Results, case: Mapping[str, Any], name: str) -> float | None:
    return results.estimate(case["label"], name).mean


def _way(case: Mapping[str, Any]) -> str:
    words = {"up": "up", "down": "down", "both": "both ways at once"}
    return f"{words[case['point']['direction']]} ({case['series']})"
