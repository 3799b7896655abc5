"""What one run of a path test is, and what the client and the server measured in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from weir.probes.load import Point
from weir.probes.marks import MarkCount
from weir.probes.probes import Clocks, Prober
from weir.probes.tcp_info import Reading

Direction = Literal["up", "down", "both"]
"""Up is from the client to the server. Both are at the same time."""
DIRECTIONS: tuple[Direction, ...] = ("up", "down", "both")


@dataclass(frozen=True, slots=True)
class Order:
    """One run: flows of the kernel's TCP or of our transport, or datagrams at a rate."""

    control: str
    """Of the kernel's TCP; empty for other loads."""
    direction: Direction
    streams: int
    duration_s: float
    warmup_s: float
    """Part of the duration that is not measured."""
    udp_bps: float | None = None
    stack: str | None = None
    """Of our transport."""
    label: str = ""
    """The name that a person gave to the stack."""

    @property
    def is_over_udp(self) -> bool:
        """Whether the load has a UDP socket of its own, in place of connections of TCP."""
        return self.udp_bps is not None or self.stack is not None

    @property
    def stack_name(self) -> str:
        """What sends: a congestion control of the kernel, a stack of ours, or `udp`."""
        return "udp" if self.udp_bps is not None else self.stack or self.control

    @property
    def flows(self) -> tuple[int, int]:
        """Flows up and down."""
        up, down = self.direction != "down", self.direction != "up"
        return up * self.streams, down * self.streams


@dataclass(slots=True)
class Flow:
    """One flow of a run. Times are nanoseconds of the client's monotonic clock."""

    name: str
    log: list[Point]
    """Bytes received so far."""
    samples: list[tuple[int, Reading]]
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class FlowLimit:
    """What limited a flow, by the rules of `weir read`; of TCP and UDP only a policer."""

    flow: int
    limit: str | None
    capacity_mbps: float | None
    policer_mbps: float | None
    policer_burst_bytes: int | None
    policer_bucket_bytes: int | None


@dataclass(slots=True)
class Stream:
    """Datagrams in one direction. Transits are on two clocks: the receiver's less the sender's."""

    name: str
    sent: int
    refused: int
    received: int
    bytes: int
    reordered: int
    dropped: int
    """By the receiving machine, and not by the path."""
    jitter_ns: int
    log: list[Point]
    """Bytes received so far, on the client's clock."""
    delays_ns: list[int]
    """One-way delays, as far as the clocks are known; of many datagrams, of every n-th."""


@dataclass(slots=True)
class Record:
    """What one run measured."""

    order: Order
    began_ns: int
    prober: Prober
    clocks: Clocks | None
    load_end_ns: int
    flows: list[Flow] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    foreign_ns: list[tuple[int, int, int]] = field(default_factory=list)
    loaded_ns: list[Point] = field(default_factory=list)
    cpu_ratio: float = 0.0
    """Processor time of this process over the time of the load."""
    marks: list[MarkCount] = field(default_factory=list)
    limits: list[FlowLimit] = field(default_factory=list)
    allowed_bps: float | None = None
    """What the server allows in one direction."""
    dropped: int = 0
    """Datagrams of our transport that the receiving machines dropped, and not the path."""
    refused: tuple[int, int] = (0, 0)
    """Datagrams of our transport that packet filters dropped, of this machine and of the server."""
