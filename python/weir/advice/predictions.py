"""What each controller would get on the path, compared with the one that was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from weir import _native
from weir.advice.choices import Option
from weir.advice.conditioned import conditioned, typical_miss
from weir.estimates.path import Path
from weir.estimates.quantity import Quantity
from weir.modelling.loads import Load
from weir.modelling.measured import Flow, Measurement
from weir.modelling.simulate import Check, Job, run_all, unlimited_keys
from weir.statistics.intervals import t_quantile

Row = Mapping[str, Any]

_UNLIKE, _UNLIKE_ON_TRACES = 0.01, 0.08
"""Standard deviations, as logarithms; docs/studies/predict.md has what was measured."""


@dataclass(frozen=True)
class Work:
    """What each option has to do."""

    times: Mapping[str, str]
    """Keys of the duration."""
    size_bytes: int | None
    """None if it sends for a time instead."""

    def keys(self, streams: int) -> dict[str, str]:
        """Keys of a scenario in which `streams` connections share the bytes."""
        if self.size_bytes is None:
            return dict(self.times)
        share = max(self.size_bytes // streams, 1)
        file = f"{{ kind = 'file', size = '{share}b' }}"
        return {"flow.0.workload": file, **self.times}


@dataclass(frozen=True)
class Prediction:
    """What an option would get, or got. None is a value that no run has."""

    option: Option
    goodput_mbps: Quantity | None
    rtt_ms_p95: Quantity | None
    fct_s: Quantity | None
    gain: Quantity | None
    """Its goodput over that of the measured controller."""
    neighbour: float | None
    """The goodput of a CUBIC flow next to it, over that next to another CUBIC flow."""
    runs: int = 0
    """Runs on the path itself that the values are those of; 0 if they are predicted."""

    def as_json(self) -> dict[str, Any]:
        """The form of `--json`."""
        return {
            "name": self.option.name,
            "stack": self.option.stack,
            "setting": self.option.setting.name or None,
            "basis": "measured" if self.runs else "predicted",
            "goodput_mbps": self.goodput_mbps.as_json() if self.goodput_mbps else None,
            "rtt_ms_p95": self.rtt_ms_p95.as_json() if self.rtt_ms_p95 else None,
            "fct_s": self.fct_s.as_json() if self.fct_s else None,
            "gain": self.gain.as_json() if self.gain else None,
            "neighbour": self.neighbour,
        }


def workload_of(flow: Flow, size: str | None) -> Work:
    """The measured bytes, or a file of `size`.

    A sender at a rate, and a load whose beginning was not measured, continue for the same time.
    """
    is_timed = "flow.0.workload" in flow.source_keys or WARMUP in flow.source_keys
    if is_timed and size is None:
        return Work({"measure.duration": _ms(flow.duration_s)}, None)
    wanted = flow.delivered_bytes if size is None else round(_native.parse_quantity("size", size))
    if size is None and wanted > _MOST_BYTES:
        span = max(flow.duration_s * _MOST_BYTES / wanted, _LEAST_S)
        return Work({"measure.duration": _ms(span)}, None)
    limit = max(flow.duration_s * wanted / flow.delivered_bytes * _PATIENCE, _LEAST_S)
    # A transfer is measured from its first byte on.
    return Work({"measure.duration": _ms(limit), WARMUP: "0ms"}, wanted)


def predict(
    measured: Measurement,
    check: Check,
    chosen: Sequence[Option],
    work: Work,
    *,
    repeat: int,
    seed: int,
    neighbours: int = 2,
) -> list[Prediction]:
    """What the options would get, the one with the most goodput first.

    Each repeat draws the parameters of the path from their intervals, such that the measured flow
    repeats; all options have the same. The first option is the measured controller.
    """
    drawn = conditioned(measured.path, check.flow, repeat, seed)
    paths = [one.path for one in drawn]
    jobs = [
        Job(_alone(one.path, check.flow, option, work), one.seed, others=one.path.cross_flows())
        for option in chosen
        for one in drawn
    ]
    shared = [
        Job(_next_to(one.path, check.flow, option), one.seed, 2, one.path.cross_flows())
        for option in chosen
        for one in drawn[:neighbours]
    ]
    tables = run_all([*jobs, *shared])
    rows = [table["flows"].to_dicts() for table in tables]
    own = [
        [combined(one) for one in rows[place * repeat : (place + 1) * repeat]]
        for place in range(len(chosen))
    ]
    # How far the model is off shows in all that was measured, and in the flow that made it.
    goodputs = {option.name: one for option, one in zip(chosen, own, strict=True)}
    off = max(
        typical_miss(drawn),
        *(missed(load, goodputs[load.stack]) for load in measured.loads if load.stack in goodputs),
        0.0,
    )
    longest = max(_longest_rtt(path) for path in paths)
    base = [_neighbour(one) for one in rows[len(jobs) : len(jobs) + neighbours]]
    found = []
    for place, option in enumerate(chosen):
        start = len(jobs) + place * neighbours
        others = [_neighbour(one) for one in rows[start : start + neighbours]]
        share = sum(others) / sum(base) if sum(base) and chosen[0].stack == "cubic" else None
        late = abs(math.log1p(check.error("rtt_ms_p95") or 0.0))
        scale = _Scale(off, late, measured.path, longest)
        found.append(_prediction(option, own[place], own[0], scale, work, share))
    return ranked(found)


def ranked(found: Sequence[Prediction]) -> list[Prediction]:
    """The option with the most goodput first, those without a value last."""
    return sorted(found, key=lambda one: -one.goodput_mbps.value if one.goodput_mbps else math.inf)


def missed(load: Load, rows: Sequence[Row]) -> float:
    """By which factor, as a logarithm, the runs of a model miss what was measured."""
    predicted = [row["goodput_mbps"] for row in rows if row["goodput_mbps"]]
    if not predicted:
        return 0.0
    return abs(math.log(median(predicted) / median(load.goodputs_mbps)))


def combined(rows: Sequence[Row]) -> Row:
    """Connections that share a transfer as one: it is complete when the last one is."""
    if len(rows) == 1:
        return {**rows[0], "goodput_mbps": _goodput(rows[0])}
    times = [row["fct_s"] for row in rows]
    end = max(times) if all(time is not None for time in times) else None
    delays = [row["rtt_ms_p95"] or row["rtt_ms_max"] or 0.0 for row in rows]
    carried = sum(row["delivered_bytes"] for row in rows)
    sums = math.fsum(row["goodput_mbps"] or 0.0 for row in rows)
    return {
        "goodput_mbps": (carried * 8e-6 / end if end else sums) or None,
        "rtt_ms_p95": math.fsum(delays) / len(rows),
        "fct_s": end,
    }


def _goodput(row: Row) -> float | None:
    """None if nothing was delivered while the run was measured, as when it ended before that."""
    return row["goodput_mbps"] if row["delivered_bytes"] else None


def _alone(path: Path, flow: Flow, option: Option, work: Work) -> dict[str, str]:
    own = {**option.keys(), **work.keys(option.setting.streams), **_UNSAMPLED}
    return {**unlimited_keys(path, flow), **own}


def _next_to(path: Path, flow: Flow, option: Option) -> dict[str, str]:
    span = min(max(flow.duration_s, _LEAST_S), _MOST_NEIGHBOUR_S)
    return {
        **path.keys(),
        **option.setting_keys(),
        **_UNSAMPLED,
        "flow.1.stack": "cubic",
        "flow.1.start_jitter": "100ms",
        "measure.duration": _ms(span),
    }


def _neighbour(rows: Sequence[Row]) -> float:
    return float(rows[-1]["goodput_mbps"])


@dataclass(frozen=True)
class _Scale:
    """How far a model is off, as logarithms, and what the path allows."""

    off: float
    late: float
    path: Path
    longest_ms: float


def _prediction(
    option: Option,
    rows: Sequence[Row],
    first: Sequence[Row],
    scale: _Scale,
    work: Work,
    share: float | None,
) -> Prediction:
    off, path = scale.off, scale.path
    goodputs = [row["goodput_mbps"] for row in rows]
    both = zip(goodputs, (row["goodput_mbps"] for row in first), strict=True)
    gains = [own / other if own and other else None for own, other in both]
    unlike = _UNLIKE_ON_TRACES if path.trace else _UNLIKE
    is_same = rows is first or gains == [1.0] * len(gains)
    delays = [row["rtt_ms_p95"] or row["rtt_ms_max"] for row in rows]
    times = [row["fct_s"] for row in rows]
    return Prediction(
        option,
        predictive(goodputs, off, (0.0, _most(path)), unlike),
        predictive(delays, scale.late, (path.delay_ms.low, scale.longest_ms), unlike),
        predictive(times, off, unlike=unlike) if work.size_bytes and all(times) else None,
        Quantity(1.0, 1.0, 1.0) if is_same else predictive(gains, off, unlike=unlike),
        share,
    )


def predictive(
    values: Sequence[float | None],
    off: float,
    bounds: tuple[float, float] = (0.0, math.inf),
    unlike: float = _UNLIKE,
) -> Quantity | None:
    """The median, and the interval in which a measurement lies with 95 %.

    Runs without a value say nothing: None if these are half of them or more.

    Its width has the spread of the repeats, `off`: by which factor, as a logarithm, the model
    missed what it was made from, and `unlike`: by how much others differ from our transport on the
    same path. It ends at `bounds`, which the path sets.
    """
    logs = [math.log(value) for value in values if value]
    n = len(logs)
    if 2 * n <= len(values):
        return None
    mean = math.fsum(logs) / n
    variance = math.fsum((one - mean) ** 2 for one in logs) / (n - 1) if n > 1 else 0.0
    half = t_quantile(max(n - 1, 1)) * math.sqrt(variance * (1 + 1 / n)) if variance else 0.0
    half = math.hypot(half, 2 * off, 2 * unlike)
    least, most = map(float, bounds)  # of a path they may be numbers of NumPy
    middle = math.exp(median(logs))
    low, high = max(math.exp(mean - half), least), min(math.exp(mean + half), most)
    return Quantity(min(middle, most), min(low, middle, most), max(high, min(middle, most)))


def _longest_rtt(path: Path) -> float:
    """The round trip behind a full queue, in ms; of a path whose rate changes at the lowest one."""
    if path.trace or path.discipline:
        return math.inf
    slowest = min((rate for _, rate in path.steps), default=path.rate_mbps.value)
    full = path.queue_bytes.value + 2 * path.packet_bytes
    return path.delay_ms.value * _DELAY_SLACK + full * 8e-3 / slowest


def _most(path: Path) -> float:
    """The largest goodput that the path carries, where its largest rate is known."""
    if path.trace:
        return math.inf
    most = path.rate_mbps.high or path.rate_mbps.most or math.inf
    return max(most, *(rate for _, rate in path.steps), 0.0)


def _ms(seconds: float) -> str:
    return f"{max(round(seconds * 1e3), 1)}ms"


WARMUP = "measure.warmup"
_UNSAMPLED = {"measure.sample_interval": "0s"}
_MOST_BYTES = 30_000_000
"""Larger transfers send for a time instead: a simulation of more would take long."""
_LEAST_S = 10.0
_MOST_NEIGHBOUR_S = 20.0
_PATIENCE = 4.0
"""A transfer may take this many times as long as the measured one."""
_DELAY_SLACK = 1.05
