"""Staggered tests: flows that join and leave while others go on, and what to ask of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from weir.experiments.networks import Network
from weir.results.results import Results

_FLOW = """
[[flow]]
name = "flow {number}"
stack = "{stack}"
from = "senders"
to = "receiver"
start = "{start:.6f}s"
duration = "{duration:.6f}s"
start_jitter = "{wait:.6f}s"
"""

_MEASURE = """
[measure]
duration = "{duration:.6f}s"
sample_interval = "{step:.6f}s"
repeat = {repeat}
seed = {seed}
"""

RANDOM_WAIT_S = 0.1
"""Every flow waits a random time up to this before it starts."""

_SAMPLES = 600
_AT_ITS_END = 1e-6


@dataclass(frozen=True, slots=True)
class Timing:
    """When each flow of a test starts and for how long it sends, in seconds."""

    name: str
    flows: tuple[tuple[float, float], ...]
    scale: float = 1.0
    """What all times are multiplied by, where the full ones would take too long to simulate."""

    @property
    def duration_s(self) -> float:
        """The length of the whole test."""
        return self.scale * max(start + length for start, length in self.flows)

    @property
    def step_s(self) -> float:
        """The time between two samples: 0.1 s in a test of 60 s."""
        return self.duration_s / _SAMPLES

    def starts_s(self) -> list[float]:
        """When each flow starts, random wait left out."""
        return [self.scale * start for start, _ in self.flows]

    def ends_s(self) -> list[float]:
        """When each flow ends, random wait left out."""
        return [self.scale * (start + length) for start, length in self.flows]


def scenario(
    name: str, network: Network, stacks: Sequence[str], timing: Timing, repeat: int, seed: int
) -> str:
    """One staggered test; `stacks` has one member per flow of `timing`."""
    flows = "".join(
        _FLOW.format(
            number=number,
            stack=stack,
            start=timing.scale * start,
            duration=timing.scale * length,
            wait=timing.scale * RANDOM_WAIT_S,
        )
        for number, (stack, (start, length)) in enumerate(
            zip(stacks, timing.flows, strict=True), start=1
        )
    )
    measure = _MEASURE.format(
        duration=timing.duration_s, step=timing.step_s, repeat=repeat, seed=seed
    )
    return f'name = "{name}"\n{network.topology()}{flows}{measure}'


# What happened.


def goodputs(results: Results, label: str, step_s: float) -> pl.DataFrame:
    """Mean goodput of every flow per slice of time: `run`, `flow`, `t_s` (its middle), `mbps`."""
    return _sliced(results, label, step_s, "goodput_mbps", "mbps")


def windows(results: Results, label: str, step_s: float) -> pl.DataFrame:
    """Mean congestion window of every flow per slice of time: the same with `cwnd_kb`."""
    sliced = _sliced(results, label, step_s, "cwnd_bytes", "cwnd_kb")
    return sliced.with_columns(pl.col("cwnd_kb") / 1000)


def _sliced(results: Results, label: str, step_s: float, column: str, name: str) -> pl.DataFrame:
    runs = results.runs.filter(label=label, status="ok")["run"].implode()
    # A sample of a rate is about the time before it: one at the end of a slice belongs to it.
    number = ((pl.col("t_s") / step_s - _AT_ITS_END).floor()).clip(0)
    return (
        results.scan("samples")
        .filter(pl.col("run").is_in(runs))
        .group_by("run", "flow", ((number + 0.5) * step_s).alias("t_s"))
        .agg(pl.col(column).cast(pl.Float64).mean().alias(name))
        .sort("run", "flow", "t_s")
        .collect()
    )
