"""What is measured: dumbbells over three hops, each as a scenario file and as facts about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

Group = Literal["dumbbell", "flow count", "duration"]

STACK = "sack/reno"

_SPREAD_S = 0.1
"""The flows start one after the other within this time, or a tenth of a shorter run."""


@dataclass(frozen=True, slots=True)
class Case:
    """Equal bulk flows over one bottleneck with a buffer of one bandwidth-delay product."""

    name: str
    group: Group
    flows: int
    rate_mbps: int
    rtt_ms: int
    sim_s: float
    sample_ms: int = 100
    ns3_sim_s: float | None = None
    """What ns-3 simulates of it, where all of it would take minutes; `None` leaves ns-3 out."""

    def scaled(self, scale: float) -> Case:
        """The same for a share of its time."""
        ns3_sim_s = None if self.ns3_sim_s is None else self.ns3_sim_s * scale
        return replace(self, sim_s=self.sim_s * scale, ns3_sim_s=ns3_sim_s)

    @property
    def stagger_us(self) -> int:
        """Time by which each flow starts after the one before."""
        return int(1e6 * min(_SPREAD_S, self.sim_s / 10)) // self.flows

    @property
    def scenario(self) -> str:
        """The case as a scenario file."""
        return f"""
            name = "bench"
            [topology]
            rate = "{self.rate_mbps}mbit"
            rtt = "{self.rtt_ms}ms"
            queue = "1bdp"
            access_rate = "{10 * self.rate_mbps}mbit"
            [[flow]]
            stack = "{STACK}"
            count = {self.flows}
            stagger = "{self.stagger_us}us"
            delayed_ack = "rfc1122"
            [measure]
            duration = "{round(self.sim_s * 1e6)}us"
            sample_interval = "{self.sample_ms}ms"
        """


def cases() -> tuple[Case, ...]:
    """All cases in the order in which they are printed."""
    return (*_DUMBBELLS, *_flow_counts(), *_durations())


_DUMBBELLS = (
    Case("1 flow, 100 Mbit/s", "dumbbell", 1, 100, 40, 60, ns3_sim_s=20),
    Case("16 flows, 1 Gbit/s", "dumbbell", 16, 1_000, 10, 20, ns3_sim_s=2),
    Case("2 flows, 10 Gbit/s", "dumbbell", 2, 10_000, 10, 5, ns3_sim_s=0.12),
)


def _flow_counts() -> Iterator[Case]:
    """Flows of 10 Mbit/s each, for shorter times the more they are.

    Every flow then does the same whatever their number, so that what a packet costs is down to the
    simulator. At a fixed total rate many flows would live on timeouts, and few would not.
    """
    for flows, sim_s in ((1, 600.0), (10, 100.0), (100, 20.0), (1_000, 5.0), (10_000, 2.0)):
        yield Case(f"{flows} × 10 Mbit/s", "flow count", flows, 10 * flows, 40, sim_s)


def _durations() -> Iterator[Case]:
    """One network for a time and for four times as long; then without rows of samples."""
    for sample_ms in (100, 0):
        for sim_s in (15.0, 60.0):
            samples = "samples" if sample_ms else "no samples"
            name = f"16 flows, {sim_s:g} s, {samples}"
            yield Case(name, "duration", 16, 100, 40, sim_s, sample_ms)
