"""What each controller would get on the path, compared with the one that was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from weir import _native
from weir.advice.choices import Option
from weir.estimates.draws import draw
from weir.estimates.path import Path
from weir.estimates.quantity import Quantity
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
    """What an option would get."""

    option: Option
    goodput_mbps: Quantity
    rtt_ms_p95: Quantity
    fct_s: Quantity | None
    gain: Quantity
    """Its goodput over that of the measured controller."""
    neighbour: float | None
    """The goodput of a CUBIC flow next to it, over that next to another CUBIC flow."""

    def as_json(self) -> dict[str, Any]:
        """The form of `--json`."""
        return {
            "name": self.option.name,
            "stack": self.option.stack,
            "setting": self.option.setting.name or None,
            "goodput_mbps": self.goodput_mbps.as_json(),
            "rtt_ms_p95": self.rtt_ms_p95.as_json(),
            "fct_s": self.fct_s.as_json() if self.fct_s else None,
            "gain": self.gain.as_json(),
            "neighbour": self.neighbour,
        }


def workload_of(flow: Flow, size: str | None) -> Work:
    """The measured bytes, or a file of `size`; a sender at a rate continues for the same time."""
    if "flow.0.workload" in flow.source_keys and size is None:
        return Work({"measure.duration": _ms(flow.duration_s)}, None)
    wanted = flow.delivered_bytes if size is None else round(_native.parse_quantity("size", size))
    if size is None and wanted > _MOST_BYTES:
        span = max(flow.duration_s * _MOST_BYTES / wanted, _LEAST_S)
        return Work({"measure.duration": _ms(span)}, None)
    limit = max(flow.duration_s * wanted / flow.delivered_bytes * _PATIENCE, _LEAST_S)
    return Work({"measure.duration": _ms(limit)}, wanted)


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

    Each repeat draws the parameters of the path from their intervals; all options have the same.
    The first option is the measured controller.
    """
    paths = draw(measured.path, repeat, seed)
    jobs = [
        Job(_alone(path, check.flow, option, work), seed + n, others=path.cross_flows())
        for option in chosen
        for n, path in enumerate(paths)
    ]
    shared = [
        Job(_next_to(path, check.flow, option), seed + n, 2, path.cross_flows())
        for option in chosen
        for n, path in enumerate(paths[:neighbours])
    ]
    tables = run_all([*jobs, *shared])
    rows = [table["flows"].to_dicts() for table in tables]
    first, found = [combined(one) for one in rows[:repeat]], []
    longest = max(_longest_rtt(path) for path in paths)
    base = [_neighbour(one) for one in rows[len(jobs) : len(jobs) + neighbours]]
    for place, option in enumerate(chosen):
        own = [combined(one) for one in rows[place * repeat : (place + 1) * repeat]]
        start = len(jobs) + place * neighbours
        others = [_neighbour(one) for one in rows[start : start + neighbours]]
        share = sum(others) / sum(base) if sum(base) and chosen[0].stack == "cubic" else None
        found.append(_prediction(option, own, first, check, measured.path, longest, work, share))
    return sorted(found, key=lambda one: -one.goodput_mbps.value)


def combined(rows: Sequence[Row]) -> Row:
    """Connections that share a transfer as one: it is complete when the last one is."""
    if len(rows) == 1:
        return rows[0]
    times = [row["fct_s"] for row in rows]
    end = max(times) if all(time is not None for time in times) else None
    delays = [row["rtt_ms_p95"] or row["rtt_ms_max"] or 0.0 for row in rows]
    carried = sum(row["delivered_bytes"] for row in rows)
    sums = math.fsum(row["goodput_mbps"] for row in rows)
    return {
        "goodput_mbps": carried * 8e-6 / end if end else sums,
        "rtt_ms_p95": math.fsum(delays) / len(rows),
        "fct_s": end,
    }


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


def _prediction(
    option: Option,
    rows: Sequence[Row],
    first: Sequence[Row],
    check: Check,
    path: Path,
    longest: float,
    work: Work,
    share: float | None,
) -> Prediction:
    goodputs = [row["goodput_mbps"] for row in rows]
    gains = [
        own / other["goodput_mbps"]
        for own, other in zip(goodputs, first, strict=True)
        if other["goodput_mbps"]
    ]
    unlike = _UNLIKE_ON_TRACES if path.trace else _UNLIKE
    is_same = rows is first or gains == [1.0] * len(gains)
    delays = [row["rtt_ms_p95"] or row["rtt_ms_max"] or 0.0 for row in rows]
    times = [row["fct_s"] for row in rows]
    off = abs(math.log1p(check.error("goodput_mbps") or 0.0))
    late = abs(math.log1p(check.error("rtt_ms_p95") or 0.0))
    return Prediction(
        option,
        predictive(goodputs, off, (0.0, _most(path)), unlike),
        predictive(delays, late, (path.delay_ms.low, longest), unlike),
        predictive(times, off, unlike=unlike) if work.size_bytes and all(times) else None,
        Quantity(1.0, 1.0, 1.0) if is_same else predictive(gains, off, unlike=unlike),
        share,
    )


def predictive(
    values: Sequence[float],
    off: float,
    bounds: tuple[float, float] = (0.0, math.inf),
    unlike: float = _UNLIKE,
) -> Quantity:
    """The median, and the interval in which a measurement lies with 95 %.

    Its width has the spread of the repeats, `off`: by which factor, as a logarithm, the model
    missed what it was made from, and `unlike`: by how much others differ from our transport on the
    same path. It ends at `bounds`, which the path sets.
    """
    logs = [math.log(max(value, _LEAST_VALUE)) for value in values]
    n = len(logs)
    mean = math.fsum(logs) / n
    variance = math.fsum((one - mean) ** 2 for one in logs) / (n - 1) if n > 1 else 0.0
    half = t_quantile(max(n - 1, 1)) * math.sqrt(variance * (1 + 1 / n)) if variance else 0.0
    half = math.hypot(half, 2 * off, 2 * unlike)
    least, most = map(float, bounds)  # of a path they may be numbers of NumPy
    middle = math.exp(median(logs))
    low, high = max(math.exp(mean - half), least), min(math.exp(mean + half), most)
    return Quantity(middle, min(low, middle), max(high, middle))


def _longest_rtt(path: Path) -> float:
    """The round trip behind a full queue, in ms; of a path whose rate changes at the lowest one."""
    if path.trace or path.discipline:
        return math.inf
    slowest = min((rate for _, rate in path.steps), default=path.rate_mbps.value)
    full = path.queue_bytes.value + 2 * path.packet_bytes
    return path.delay_ms.value * _DELAY_SLACK + full * 8e-3 / slowest


def _most(path: Path) -> float:
    """The largest goodput that the path carries, where its largest rate is known."""
    if path.rate_mbps.high is None or path.trace:
        return math.inf
    return max(path.rate_mbps.high, *(rate for _, rate in path.steps), 0.0)


def _ms(seconds: float) -> str:
    return f"{max(round(seconds * 1e3), 1)}ms"


_UNSAMPLED = {"measure.sample_interval": "0s"}
_MOST_BYTES = 30_000_000
"""Larger transfers send for a time instead: a simulation of more would take long."""
_LEAST_S = 10.0
_MOST_NEIGHBOUR_S = 20.0
_PATIENCE = 4.0
"""A transfer may take this many times as long as the measured one."""
_LEAST_VALUE = 1e-6
_DELAY_SLACK = 1.05
