"""The cells of the study: throughput, P95 one-way delay, loss and utilisation by path."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from weir.results import Results
from weir.stats import Estimate, mean_interval
from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Extent
from weir.studies.pantheon.experiment import FLOWS, flows_name, label
from weir.studies.pantheon.paths import PATHS, SECONDS, Path

THROUGHPUT, DELAY, LOSS, USED = "throughput", "P95 one-way delay", "loss", "utilisation"
OVERALL = "all paths"
STRETCH, MEAN_USED, MEAN_LOSS = "delay over the path's own", "utilisation", "loss"

_BITS = 8e-6
_TOO_FEW = "fewer than 100 packets arrived: no P95"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run of a path came to."""

    seed: int
    throughput_mbps: float
    delay_ms_p95: float | None
    loss: float
    used: float


def table(kind: str, flows: int) -> str:
    """The name of a table."""
    return f"{kind}, {flows_name(flows)}"


def study_cells(results: Results, extent: Extent) -> list[Cell]:
    """Every cell."""
    runs = _runs(results)
    cells: list[Cell] = []
    for flows in FLOWS:
        own = {
            (path.number, stack): [
                _outcome(path, flows, run) for run in runs.get(label(path, flows, stack), [])
            ]
            for path in PATHS
            for stack in extent.stacks
        }
        cells += _overall(own, flows, extent.stacks)
        for kind, unit, value, bounds in _KINDS:
            cells += [
                _cell(
                    (table(kind, flows), path.title, stack, unit),
                    [value(outcome) for outcome in own[path.number, stack]],
                    bounds,
                )
                for path in PATHS
                for stack in extent.stacks
            ]
    return cells


_KINDS: Sequence[
    tuple[str, str, Callable[[Outcome], float | None], tuple[float | None, float | None]]
] = (
    (THROUGHPUT, "Mbit/s", lambda outcome: outcome.throughput_mbps, (0.0, None)),
    (DELAY, "ms", lambda outcome: outcome.delay_ms_p95, (0.0, None)),
    (LOSS, "share", lambda outcome: outcome.loss, (0.0, 1.0)),
    (USED, "share", lambda outcome: outcome.used, (0.0, 1.0)),
)


def _cell(
    place: tuple[str, str, str, str],
    values: Sequence[float | None],
    bounds: tuple[float | None, float | None],
) -> Cell:
    """A mean over the runs; none where one of them has no value."""
    if None in values:
        return cell(*place, Estimate(None, None, None, len(values)), note=_TOO_FEW)
    return cell(*place, mean_interval(values, bounds))


def _overall(
    outcomes: Mapping[tuple[int, str], Sequence[Outcome]], flows: int, stacks: Sequence[str]
) -> Iterator[Cell]:
    """Each scheme over all paths: means, of the stretch of delays the geometric one."""
    name = table(OVERALL, flows)
    for stack in stacks:
        by_seed: dict[int, list[tuple[Path, Outcome]]] = {}
        for path in PATHS:
            for outcome in outcomes[path.number, stack]:
                by_seed.setdefault(outcome.seed, []).append((path, outcome))
        whole = [own for own in by_seed.values() if len(own) == len(PATHS)]
        used = [math.fsum(o.used for _, o in own) / len(own) for own in whole]
        lost = [math.fsum(o.loss for _, o in own) / len(own) for own in whole]
        yield cell(name, stack, MEAN_USED, "", mean_interval(used, (0.0, 1.0)))
        yield _cell((name, stack, STRETCH, ""), [_stretch(own) for own in whole], (1.0, None))
        yield cell(name, stack, MEAN_LOSS, "", mean_interval(lost, (0.0, 1.0)))


def _stretch(own: Sequence[tuple[Path, Outcome]]) -> float | None:
    """The geometric mean of P95 delay over the delay of a path without any queue."""
    logs = [
        math.log(outcome.delay_ms_p95 / (path.delay_ms + path.packet_ms))
        for path, outcome in own
        if outcome.delay_ms_p95 is not None
    ]
    return math.exp(math.fsum(logs) / len(logs)) if len(logs) == len(own) else None


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
    seconds = SECONDS - value["start_s"] - path.delay_ms / 1e3
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
    return _number(own) + (0.0 if flows == 1 else path.packet_ms + path.delay_ms)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
