"""What is carried, how, through what, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

JUMBO = 65_535
"""The largest MTU that IP knows."""

LONGEST_MSS = 65_447
"""The most data that a segment of ours may carry: a datagram less the longest header."""

SEAL_BYTES = 24
"""Bytes less if a key seals the datagram."""

TIMEOUT = "timeout"
"""The failure of a transfer that took longer than it was given."""


@dataclass(frozen=True, slots=True)
class Network:
    """What lies between the two ends: loopback, or a link between two namespaces.

    Delay is that of each direction, loss that of the directions in `loses`: `data` is from the
    sender to the receiver, `acks` the way back. `rate_mbit` and the `queue` in front of it, as
    `weir link` has them, limit the data only. Without, nothing limits the rate.
    """

    kind: Literal["loopback", "link"] = "link"
    delay_ms: float = 0.0
    loss_percent: float = 0.0
    mtu: int = 1500
    loses: Literal["both", "data", "acks"] = "both"
    rate_mbit: float | None = None
    queue: str = "1bdp"


LOCAL = Network("loopback", mtu=JUMBO)


@dataclass(frozen=True)
class Transfer:
    """One file by one protocol. `stack` is a congestion control for TCP, a stack for Weir's own.

    `protocol` is `tcp`, the kernel's, `tcp-dialogue`, the same by a program that greets and
    confirms, or `weir`, or what a program of another's understands.
    `options` are for the end that sends. `with_key` gives both ends a key that they share.
    """

    protocol: str
    stack: str
    size_bytes: int
    options: Mapping[str, Any] = field(default_factory=dict)
    with_key: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a transfer.

    `seconds` are there when the receiver ended in its own time, whether or not what it has is what
    was sent; `is_intact` says that it is, by its SHA-256. `resent` is the share of data segments
    that were sent again, where the sender counts them.
    """

    seconds: float | None
    is_intact: bool
    received_bytes: int
    send_cpu_s: float | None = None
    receive_cpu_s: float | None = None
    failure: str | None = None
    resent: float | None = None

    @property
    def timed_out(self) -> bool:
        """Whether it would have taken longer than it was given."""
        return self.failure == TIMEOUT
