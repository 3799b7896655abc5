"""What a bundle is: a scenario, who is run in it, and checks with their envelopes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from weir.curves import Array, Curve
from weir.studies.envelopes import Envelope

MSS = 1448
PACKET = 1500
PAYLOAD = MSS / PACKET
"""Application bytes per byte of a full packet."""

_SLACK_S = 1e-6


@dataclass(frozen=True, eq=False)
class Observed:
    """One run of a bundle: its first flow and the bottleneck, over time."""

    flow: Mapping[str, float | None]
    """The row of table `flows`."""
    samples: pl.DataFrame
    queues: pl.DataFrame
    curve: Curve

    def column(self, name: str, from_s: float, to_s: float) -> Array:
        """A column of `samples` between two instants."""
        is_within = pl.col("t_s").is_between(from_s - _SLACK_S, to_s + _SLACK_S)
        values = self.samples.filter(is_within)[name].drop_nulls()
        return np.asarray(values.cast(pl.Float64).to_numpy(), dtype=np.float64)

    def windows(self, from_s: float, to_s: float) -> Array:
        """Congestion windows between two instants, in segments."""
        return self.column("cwnd_bytes", from_s, to_s) / MSS

    def rates(self, from_s: float, to_s: float, bin_s: float) -> Array:
        """Goodputs of whole bins between two instants, in Mbit/s."""
        count = max(0, math.floor((to_s - from_s) / bin_s + _SLACK_S))
        return self.curve.rates(from_s + bin_s * np.arange(count + 1, dtype=np.float64))

    def phases(self) -> list[tuple[str, float, float]]:
        """What the control was doing from when to when, as the samples saw it."""
        found: list[tuple[str, float, float]] = []
        rows = self.samples.select(pl.col("phase").cast(pl.String), "t_s").iter_rows()
        for phase, time_s in rows:
            if found and found[-1][0] == phase:
                found[-1] = (phase, found[-1][1], time_s)
            else:
                if found:
                    found[-1] = (found[-1][0], found[-1][1], time_s)
                found.append((phase, time_s, time_s))
        return found


@dataclass(frozen=True)
class Check:
    """One number of a run and what it must lie between."""

    name: str
    unit: str
    envelope: Envelope
    value: Callable[[Observed], float | None]
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a stack is outside, where that has been found out; `*` is for every other."""

    def reason(self, stack: str) -> str:
        """What to say of a stack that is outside."""
        return self.reasons.get(stack, self.reasons.get("*", ""))


@dataclass(frozen=True)
class Bundle:
    """A scenario, the stacks that run in it, and what is checked."""

    name: str
    source: str
    stacks: Sequence[str]
    text: str
    """A scenario with `{stack}`, `{repeat}` and `{seed}` left open."""
    checks: Sequence[Check]
    is_single: bool = False
    """Nothing in it is drawn at random: one run says all."""
    moments: Sequence[tuple[float, str]] = ()
    """What its picture marks."""
    level_mbps: float | None = None

    def label(self, stack: str) -> str:
        """The name of a case."""
        return f"{self.name}, {stack}"

    def scenario(self, stack: str, repeat: int, seed: int) -> str:
        """With one stack."""
        return self.text.format(stack=stack, repeat=1 if self.is_single else repeat, seed=seed)


def least(values: Array) -> float | None:
    """The smallest of them, if there is any."""
    return float(values.min()) if len(values) else None


def most(values: Array) -> float | None:
    """The largest."""
    return float(values.max()) if len(values) else None


def median(values: Array) -> float | None:
    """The middle one."""
    return float(np.median(values)) if len(values) else None
