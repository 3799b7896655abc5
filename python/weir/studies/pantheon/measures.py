"""Rates of paths, and throughput, one-way delay and loss of each run."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import polars as pl

from weir.base.grid import counted
from weir.cells.cells import Cells
from weir.experiments.schemes import END_TO_END, KINDS, present
from weir.results.results import Results
from weir.statistics.intervals import Estimate

__all__ = ["END_TO_END", "KINDS", "present"]

SECONDS = 30
"""How long a run takes, and after how long a trace of opportunities repeats."""

_BITS = 8e-6
_OPPORTUNITY_MBIT = 1500 * _BITS

Path = Mapping[str, Any]
"""One of the description's paths."""


@cache
def poisson(mbps: float) -> tuple[int, ...]:
    """Moments, in ms, at which 1500 bytes may leave: of a Poisson process with this mean rate.

    The last one ends the cycle. Times are whole milliseconds, as in mahimahi's files, so that
    several may fall together.
    """
    rng = random.Random(f"pantheon, {mbps:g} Mbit/s")  # noqa: S311
    count = round(mbps * SECONDS / _OPPORTUNITY_MBIT)
    times = list(itertools.accumulate(-math.log(1 - rng.random()) for _ in range(count)))
    scale = SECONDS * 1000 / times[-1]
    return tuple(round(time * scale) for time in times)


def trace(path: Path, direction: str) -> str:
    """The opportunities of a direction, as in a scenario; empty if its rate is constant."""
    own = poisson(path[direction]) if path.get("is_poisson") else path.get(f"{direction}_ms", ())
    return f"{{ rate_trace = [{', '.join(map(str, own))}] }}" if own else ""


def titled(paths: Sequence[Path]) -> dict[int, str]:
    """For tables and pictures, by number."""
    return {path["number"]: f"{path['number']}. {path['name']}" for path in paths}


def packet_ms(path: Path) -> float:
    """How long a full packet takes to leave the bottleneck once its turn has come."""
    return 0.0 if path.get("is_poisson") else _OPPORTUNITY_MBIT / float(path["up"]) * 1e3


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one run over a path."""

    seed: int
    throughput_mbps: float
    delay_ms_p95: float | None
    loss: float
    used: float


def values(
    results: Results, path: Path, flows: int, stack: str, quantity: str
) -> list[float | None]:
    """A quantity of each run of a case."""
    return [getattr(own, quantity) for own in _outcomes(results, path, flows, stack)]


def overall(
    results: Results, paths: Sequence[Path], flows: int, stack: str, quantity: str
) -> list[float | None]:
    """A quantity over all paths, seed by seed: means, of delays the geometric one."""
    by_seed: dict[int, list[tuple[Path, Outcome]]] = {}
    for path in paths:
        for outcome in _outcomes(results, path, flows, stack):
            by_seed.setdefault(outcome.seed, []).append((path, outcome))
    whole = [own for own in by_seed.values() if len(own) == len(paths)]
    if quantity == "delay_ms_p95":
        return [_stretch(own) for own in whole]
    return [math.fsum(getattr(o, quantity) for _, o in own) / len(own) for own in whole]


def _outcomes(results: Results, path: Path, flows: int, stack: str) -> Iterator[Outcome]:
    label = f"path {path['number']}, {counted(flows, 'flow')}, {stack}"
    return (_outcome(path, flows, run) for run in _runs(results).get(label, []))


def _stretch(own: Sequence[tuple[Path, Outcome]]) -> float | None:
    """The geometric mean of P95 delay over the delay of a path without any queue."""
    logs = [
        math.log(outcome.delay_ms_p95 / (path["delay"] + packet_ms(path)))
        for path, outcome in own
        if outcome.delay_ms_p95 is not None
    ]
    return math.exp(math.fsum(logs) / len(logs)) if len(logs) == len(own) else None


@lru_cache(maxsize=2)
def _runs(results: Results) -> dict[str, list[dict[str, object]]]:
    """By case, in order of seeds: the seed, the first start, its flow's delay, and both links."""
    ok = results.runs.filter(status="ok").select("run", "label", "seed")
    flows = results.flows.group_by("run").agg(
        pl.col("start_s").min(), flow_delay_ms=pl.col("delay_ms_p95").first()
    )
    links = results.links
    up, wire = (links.filter(name=name).drop("name") for name in ("up", "wire"))
    joined = ok.join(flows, on="run").join(up, on="run").join(wire, on="run", suffix="_wire")
    parts = joined.sort("label", "seed").partition_by("label", as_dict=True)
    return {str(name): part.to_dicts() for (name,), part in parts.items()}


def _outcome(path: Path, flows: int, run: Mapping[str, object]) -> Outcome:
    """From the tables `flows` and `links` of a run.

    The log of a path begins as its first packet comes out. Loss is what was dropped over what was
    either dropped or came out: packets in flight at the end are neither.
    """
    value = {name: _number(number) for name, number in run.items()}
    seconds = SECONDS - value["start_s"] - path["delay"] / 1e3
    kinds = ("queue", "loss", "aqm", "policer")
    dropped = math.fsum(
        value[f"dropped_{kind}{where}"] for kind in kinds for where in ("", "_wire")
    )
    out = value["delivered_packets_wire"]
    return Outcome(
        seed=int(value["seed"]),
        throughput_mbps=value["delivered_bytes_wire"] * _BITS / seconds,
        delay_ms_p95=_delay(path, flows, run),
        loss=dropped / (dropped + out) if dropped + out else 0.0,
        used=value["utilisation"],
    )


def _delay(path: Path, flows: int, run: Mapping[str, object]) -> float | None:
    """P95 over all data packets.

    Of one flow it is in its row. Percentiles of several cannot be joined; but all wait in one queue
    and nowhere else, so theirs is the queue's, a packet's transmission and the way.
    """
    own = run["flow_delay_ms"] if flows == 1 else run["queue_delay_ms_p95"]
    if own is None:
        return None
    return _number(own) + (0.0 if flows == 1 else packet_ms(path) + path["delay"])


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


_NEAR = 0.9
"""A scheme that has this part of the best throughput is among those whose delays are compared."""


def best_schemes(throughput: Cells, delay: Cells) -> list[tuple[str, int]]:
    """Who has the least delay among those near the best throughput, and on how many paths."""
    counts: dict[str, int] = {}
    for path in throughput.rows():
        means = {s: m for s in throughput.columns() if (m := throughput.mean(path, s)) is not None}
        delays = {s: m for s in means if (m := delay.mean(path, s)) is not None}
        near = [s for s in delays if means[s] >= _NEAR * max(means.values())]
        if near:
            best = min(near, key=lambda stack: delays[stack])
            counts[best] = counts.get(best, 0) + 1
    return sorted(counts.items(), key=lambda own: -own[1])


def winners(used: Cells) -> set[str]:
    """The schemes that use some path best."""
    return {
        max(parts, key=lambda stack: parts[stack])
        for path in used.rows()
        if (parts := {s: m for s in used.columns() if (m := used.mean(path, s)) is not None})
    }


def point(ours: Estimate) -> Estimate:
    """The same with an interval of no width where it has none."""
    low, high = (ours.mean if end is None else end for end in (ours.lo, ours.hi))
    return replace(ours, lo=low, hi=high)


def levels(paths: Sequence[Path]) -> dict[str, float]:
    """What the link of each path carries, by its title."""
    return {
        title: float(path["up"]) for path, title in zip(paths, titled(paths).values(), strict=True)
    }
