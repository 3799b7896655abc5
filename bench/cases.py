"""What is measured: dumbbells over three hops and a radio chain, as scenario files and as facts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

Group = Literal["dumbbell", "flow count", "arrivals", "duration", "radio"]

_SPREAD_S = 0.1
"""The flows start one after the other within this time, or a tenth of a shorter run."""


@dataclass(frozen=True, slots=True)
class Dumbbell:
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
    stack: str = "sack/reno"

    @property
    def ns3_program(self) -> str:
        """The program that does the same on ns-3."""
        return "dumbbell"

    @property
    def ns3_options(self) -> dict[str, str]:
        """Its options."""
        return {
            "flows": str(self.flows),
            "rate": str(self.rate_mbps * 1_000_000),
            "rtt": f"{self.rtt_ms}ms",
            "stagger": f"{self.stagger_us}us",
            "duration": f"{self.ns3_sim_s or self.sim_s}s",
        }

    @property
    def ns3_repeats(self) -> int:
        """How often ns-3 runs at most: repeats would take minutes and change little."""
        return 1

    def scaled(self, scale: float) -> Dumbbell:
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
            stack = "{self.stack}"
            count = {self.flows}
            stagger = "{self.stagger_us}us"
            delayed_ack = "rfc1122"
            [measure]
            duration = "{round(self.sim_s * 1e6)}us"
            sample_interval = "{self.sample_ms}ms"
        """


@dataclass(frozen=True, slots=True)
class Chain:
    """A bulk flow from one end of a chain of radios to the other, over AODV and 802.11 DSSS."""

    name: str
    hops: int
    window: int
    sim_s: float
    mss: int = 1460
    spacing_m: int = 200
    sample_ms: int = 100
    stack: str = "newreno/reno"
    group: Group = "radio"
    flows: int = 1
    rate_mbps: int = 2
    rtt_ms: int | None = None
    """No round trip is set: nearly all of it is the wait for the medium."""

    @property
    def ns3_sim_s(self) -> float:
        """What ns-3 simulates of it: all."""
        return self.sim_s

    @property
    def ns3_program(self) -> str:
        """The program that does the same on ns-3."""
        return "chain"

    @property
    def ns3_options(self) -> dict[str, str]:
        """Its options."""
        return {
            "hops": str(self.hops),
            "spacing": str(self.spacing_m),
            "window": str(self.window),
            "segment": str(self.mss),
            "duration": f"{self.sim_s}s",
        }

    @property
    def ns3_repeats(self) -> int | None:
        """How often ns-3 runs at most: as often as Weir."""
        return None

    def scaled(self, scale: float) -> Chain:
        """The same for a share of its time."""
        return replace(self, sim_s=self.sim_s * scale)

    @property
    def scenario(self) -> str:
        """The case as a scenario file."""
        return f"""
            name = "bench"
            [topology]
            kind = "radio"
            [topology.radio]
            placement = "chain"
            hops = {self.hops}
            spacing = "{self.spacing_m}m"
            rate = "{self.rate_mbps}mbit"
            arp = false
            routing = "aodv"
            [[flow]]
            stack = "{self.stack}"
            mss = {self.mss}
            window_limit = {self.window}
            initial_window = 2
            sack = false
            timestamps = false
            delayed_ack = "off"
            min_rto = "200ms"
            gso = 1
            [measure]
            duration = "{round(self.sim_s * 1e6)}us"
            sample_interval = "{self.sample_ms}ms"
        """


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Connections that come and go over the path of a dumbbell, with a tenth of web-search's sizes.

    A mean of 171 KB; half of them have less than 8 KB, so that handshakes and ends count.
    """

    name: str
    flows: int
    """Connections."""
    rate_mbps: int
    rtt_ms: int
    load: float
    sample_ms: int = 100
    stack: str = "sack/reno"
    group: Group = "arrivals"

    def scaled(self, scale: float) -> Arrivals:
        """The same for a share of its connections."""
        return replace(self, flows=max(1, round(self.flows * scale)))

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
            stack = "{self.stack}"
            delayed_ack = "rfc1122"
            [flow.workload]
            kind = "flow-sizes"
            load = "{self.load:.0%}"
            arrivals = {self.flows}
            sizes = [
                [0, 0], [1000, 0.15], [2000, 0.2], [3000, 0.3], [5000, 0.4], [8000, 0.53],
                [20000, 0.6], [100000, 0.7], [200000, 0.8], [500000, 0.9], [1000000, 0.97],
                [3000000, 1],
            ]
            [measure]
            duration = "100000s"
            sample_interval = "{self.sample_ms}ms"
        """


Ns3Case = Dumbbell | Chain
"""A case that ns-3 can run too."""

Case = Ns3Case | Arrivals


def cases() -> tuple[Case, ...]:
    """All cases in the order in which they are printed."""
    return (*_DUMBBELLS, *_flow_counts(), *_ARRIVALS, *_durations(), _CHAIN)


_CHAIN = Chain("8 hops, window 8", 8, 8, 51.0)

_ARRIVALS = (
    Dumbbell("16 long flows", "arrivals", 16, 1_000, 10, 20),
    Arrivals("100 000 connections", 100_000, 1_000, 10, 0.6),
)

_DUMBBELLS = (
    Dumbbell("1 flow, 100 Mbit/s", "dumbbell", 1, 100, 40, 60, ns3_sim_s=20),
    Dumbbell("16 flows, 1 Gbit/s", "dumbbell", 16, 1_000, 10, 20, ns3_sim_s=2),
    Dumbbell("2 flows, 10 Gbit/s", "dumbbell", 2, 10_000, 10, 5, ns3_sim_s=0.12),
)


def _flow_counts() -> Iterator[Dumbbell]:
    """Flows of 10 Mbit/s each, for shorter times the more they are.

    Every flow then does the same whatever their number, so that what a packet costs is down to the
    simulator. At a fixed total rate many flows would live on timeouts, and few would not.
    """
    for flows, sim_s in ((1, 600.0), (10, 100.0), (100, 20.0), (1_000, 5.0), (10_000, 2.0)):
        yield Dumbbell(f"{flows} × 10 Mbit/s", "flow count", flows, 10 * flows, 40, sim_s)


def _durations() -> Iterator[Dumbbell]:
    """One network for a time and for four times as long; then without rows of samples."""
    for sample_ms in (100, 0):
        for sim_s in (15.0, 60.0):
            samples = "samples" if sample_ms else "no samples"
            name = f"16 flows, {sim_s:g} s, {samples}"
            yield Dumbbell(name, "duration", 16, 100, 40, sim_s, sample_ms)
