"""One run as measures see it: the flow under test, other flows and the bottleneck, over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import polars as pl

from weir import _native
from weir.dynamics.curves import Array, Curve
from weir.results.results import INTERNAL, Results

MSS = 1448
"""Payload of a full segment, where a scenario does not say otherwise."""

_HEADERS = 52
"""IP, TCP and timestamps; a full packet has 1500 bytes."""
_SLACK_S = 1e-6

Row = Mapping[str, float | None]
Span = tuple[str, float, float]
"""A phase, when it began, when the next one did."""


@dataclass(frozen=True, eq=False)
class Observed:
    """One run of a case."""

    run: int
    seed: int
    flows: Sequence[Row]
    """The rows of table `flows`; the first is the flow under test."""
    link: Row
    """The row of the bottleneck in table `links`."""
    all_samples: pl.DataFrame
    """The samples of all flows."""
    queues: pl.DataFrame
    """The samples of the bottleneck."""
    curves: Sequence[Curve]
    mss: int = MSS
    warmup_s: float = 0.0
    whole: Callable[[], Row] = dict
    """Returns the run's metrics, which take a while."""
    reverse: Row = field(default_factory=dict)
    """The row of the bottleneck's reverse direction in table `links`."""

    @property
    def flow(self) -> Row:
        """The row of the flow under test in table `flows`."""
        return self.flows[0]

    @cached_property
    def samples(self) -> pl.DataFrame:
        """The samples of the flow under test."""
        return self.all_samples.filter(pl.col("flow") == 0)

    @property
    def curve(self) -> Curve:
        """What the flow under test had delivered at any time."""
        return self.curves[0]

    @property
    def payload(self) -> float:
        """Application bytes per byte of a full packet."""
        return self.mss / (self.mss + _HEADERS)

    def column(self, name: str, from_s: float = 0.0, to_s: float = math.inf) -> Array:
        """A column of `samples` between two times, without nulls.

        A controller's internal variable that never has a value has no column.
        """
        if name.startswith(INTERNAL) and name not in self.samples.columns:
            return np.empty(0)
        is_within = pl.col("t_s").is_between(from_s - _SLACK_S, to_s + _SLACK_S)
        values = self.samples.filter(is_within)[name].drop_nulls()
        return np.asarray(values.cast(pl.Float64).to_numpy(), dtype=np.float64)

    def at(self, name: str, time_s: float) -> float | None:
        """The value of a column of `samples` in the first row from `time_s` on."""
        values = self.column(name, time_s)
        return float(values[0]) if len(values) else None

    def rates(self, from_s: float, to_s: float, bin_s: float) -> Array:
        """Goodputs of whole bins between two times, in Mbit/s."""
        count = max(0, math.floor((to_s - from_s) / bin_s + _SLACK_S))
        return self.curve.rates(from_s + bin_s * np.arange(count + 1, dtype=np.float64))

    @cached_property
    def phases(self) -> list[Span]:
        """The phases of the controller in order, at the resolution of the samples."""
        found: list[Span] = []
        rows = self.samples.select(pl.col("phase").cast(pl.String), "t_s").iter_rows()
        for phase, time_s in rows:
            if found:
                last, begin, _ = found[-1]
                found[-1] = (last, begin, time_s)
            if not found or found[-1][0] != phase:
                found.append((phase, time_s, time_s))
        return found

    def spans(self, phase: str) -> list[tuple[float, float]]:
        """When each phase of that name began and ended; `probe_bw` stands for all of its parts."""
        return [(begin, end) for name, begin, end in self.phases if is_phase(name, phase)]


def is_phase(name: str, wanted: str) -> bool:
    """Whether a phase is the wanted one, or a part of it, as `probe_bw_up` of `probe_bw`."""
    return name == wanted or name.startswith(f"{wanted}_")


class Runs:
    """The runs of a result directory by the label of their case."""

    def __init__(self, results: Results) -> None:
        self._results = results
        own = results.runs.filter(status="ok").sort("seed").select("run", "label", "seed")
        self._by_label: dict[str, list[tuple[int, int]]] = {}
        for run, label, seed in own.iter_rows():
            self._by_label.setdefault(label, []).append((run, seed))
        self._flows = _partition(results.flows)
        self._links = _partition(results.links.sort("link"))
        self._warmups = {
            case["label"]: _native.parse_quantity("time", case["scenario"]["measure"]["warmup"])
            for case in results.cases
        }
        self._mss = {case["label"]: _mss(case["scenario"]["flow"][0]) for case in results.cases}

    def of(self, label: str) -> list[Observed]:
        """The successful runs of a case, by ascending seed."""
        pairs = self._by_label.get(label, [])
        runs = [run for run, _ in pairs]
        samples = self._over_time("samples", runs)
        queues = self._over_time("queues", runs)
        found = []
        for run, seed in pairs:
            links = self._links[run].to_dicts()
            link = next(own for own in links if own["monitored"])
            back = next((own for own in links if own["name"] == f"{link['name']}-reverse"), {})
            own_queue = queues.get(run, _NOTHING)
            if not own_queue.is_empty():
                own_queue = own_queue.filter(pl.col("link") == link["link"])
            found.append(
                Observed(
                    run,
                    seed,
                    self._flows[run].sort("flow").to_dicts(),
                    link,
                    samples.get(run, _NOTHING),
                    own_queue,
                    self._results.curves.get(run, []),
                    self._mss[label],
                    self._warmups[label],
                    partial(self._whole, run),
                    back,
                )
            )
        return found

    def _whole(self, run: int) -> Row:
        return self._results.per_run.row(by_predicate=pl.col("run") == run, named=True)

    def failed(self, label: str) -> str:
        """The error of a failed run of a case; empty if there is none."""
        failed = self._results.runs.filter(pl.col("label") == label, pl.col("status") != "ok")
        return "" if failed.is_empty() else str(failed["error"][0])

    def _over_time(self, table: str, runs: Sequence[int]) -> dict[int, pl.DataFrame]:
        is_own = pl.col("run").is_in(list(runs))
        return _partition(self._results.scan(table).filter(is_own).sort("t_s").collect())


_NOTHING = pl.DataFrame(
    schema={
        "flow": pl.UInt32,
        "t_s": pl.Float64,
        "phase": pl.String,
        "cwnd_bytes": pl.UInt64,
        "rtt_ms": pl.Float64,
    }
)


def _partition(frame: pl.DataFrame) -> dict[int, pl.DataFrame]:
    parts = frame.partition_by("run", as_dict=True, maintain_order=True)
    return {int(run): own for (run,), own in parts.items()}


def _mss(flow: Mapping[str, object]) -> int:
    given = flow.get("mss")
    return int(given) if isinstance(given, int) else MSS
