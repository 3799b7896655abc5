"""Runs of a model in the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import polars as pl

from weir import _native
from weir.base.grid import number
from weir.estimates.path import Path
from weir.modelling.measured import COMPARED, Flow
from weir.running.runner import default_jobs
from weir.statistics.intervals import Estimate, mean_interval

_BASE = """
[measure]
sample_interval = "50ms"
"""
_FLOW = "[[flow]]\n"
_UDP = "udp"


@dataclass(frozen=True)
class Job:
    """A simulation: keys of a scenario, and a seed."""

    keys: Mapping[str, str]
    seed: int
    flows: int = 1
    others: Sequence[Mapping[str, str]] = ()
    """The keys of flows that are other traffic."""


def run(job: Job) -> dict[str, pl.DataFrame]:
    """The tables `flows` and `samples` of a simulation, without other traffic."""
    keys = dict(job.keys)
    for place, flow in enumerate(job.others, start=job.flows):
        keys |= {f"flow.{place}.{key}": value for key, value in flow.items()}
    text = _BASE + (job.flows + len(job.others)) * _FLOW
    result = _native.Scenario.parse(text, list(keys.items()), "model").run(job.seed)
    tables = {name: pl.DataFrame(result.table(name)) for name in ("flows", "samples")}
    own = tables["flows"].filter(pl.col("stack") != _UDP)["flow"]
    return {
        name: table.filter(pl.col("flow").is_in(own.implode())) for name, table in tables.items()
    }


def run_all(jobs: Sequence[Job]) -> list[dict[str, pl.DataFrame]]:
    """The same for several, one per core at a time."""
    with ThreadPoolExecutor(default_jobs()) as pool:
        return list(pool.map(run, jobs))


def measured_keys(path: Path, flow: Flow) -> dict[str, str]:
    """The keys of the model with the flow that measured it."""
    return {**unlimited_keys(path, flow), **flow.source_keys}


def unlimited_keys(path: Path, flow: Flow) -> dict[str, str]:
    """The same without what limited the sender or its receiver."""
    return {
        **path.keys(),
        "flow.0.stack": flow.stack,
        "flow.0.mss": str(path.packet_bytes - _HEADERS),
        "measure.duration": f"{round(flow.duration_s * 1e3)}ms",
    }


@dataclass(frozen=True)
class Check:
    """How well the model repeats the measurement."""

    flow: Flow
    repeated: Mapping[str, Estimate]
    samples: pl.DataFrame
    """The flow over time in the first of the runs."""
    runs: int
    values: Mapping[str, Sequence[float | None]]
    """What each run has."""

    def error(self, name: str) -> float | None:
        """The relative difference of the model from the measurement."""
        mean, measured = self.repeated[name].mean, getattr(self.flow, name)
        return None if mean is None or not measured else mean / measured - 1

    @property
    def refusal(self) -> str | None:
        """Why nothing should be predicted with the model; None if a run repeats the measurement.

        One run is enough: where losses are rare, the time of the first changes a flow by much.
        """
        for name, least in _MUST_AGREE.items():
            mean, measured = self.repeated[name].mean, getattr(self.flow, name)
            title, unit, _ = COMPARED[name]
            if mean is None or not measured:
                return f"the model says nothing about the {title} of the measured flow"
            if not any(_is_close(value, measured, least) for value in self.values[name]):
                return (
                    f"the model does not repeat the measured flow: its {title} is "
                    f"{number(mean)} {unit} instead of {number(measured)} {unit}; predict nothing "
                    "with it"
                )
        return None

    def as_json(self) -> dict[str, Any]:
        """The form of `--json`."""
        return {
            name: {
                "measured": getattr(self.flow, name),
                "model": self.repeated[name].as_json(),
                "error": self.error(name),
            }
            for name in COMPARED
        }


def check(path: Path, flow: Flow, *, repeat: int = 5, seed: int = 1) -> Check:
    """Simulates the flow on the model, with `repeat` seeds."""
    keys = measured_keys(path, flow)
    others = path.cross_flows()
    found = run_all([Job(keys, seed + n, others=others) for n in range(repeat)])
    rows = [one["flows"].row(0, named=True) for one in found]
    values = {name: [row[name] for row in rows] for name in COMPARED}
    repeated = {name: mean_interval(values[name]) for name in COMPARED}
    return Check(flow, repeated, found[0]["samples"], repeat, values)


def _is_close(value: float | None, measured: float, least: float) -> bool:
    if value is None:
        return False
    return abs(value - measured) <= least or 1 / _MOST_FACTOR <= value / measured <= _MOST_FACTOR


_HEADERS = 52
"""IPv4, TCP and timestamps."""
_MOST_FACTOR = 2.0
"""By which factor a model may miss what it was made from."""
_MUST_AGREE = {"goodput_mbps": 0.0, "rtt_ms_p50": 2.0}
"""What it must repeat, and the difference that does not matter."""
