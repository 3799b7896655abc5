"""What relays and links share: options of a path, its counters, its errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict

from weir._native import ScenarioError
from weir.base.errors import InputError, RunError


class DirectionReport(TypedDict):
    """Counters of one direction of a path, in packets, and how late they left."""

    received: int
    """Packets that entered the path."""
    received_bytes: int
    sent: int
    """Packets that left it."""
    sent_bytes: int
    queued: int
    """Packets in the queue at the moment."""
    lost: int
    """Dropped by the configured loss."""
    queue_dropped: int
    """Dropped by the queue or a policer."""
    too_long: int
    """Longer than the path carries."""
    duplicated: int
    corrupted: int
    reordered: int
    marked: int
    """Marked Congestion Experienced (ECN)."""
    overflow: int
    """Error: the receive buffer was full."""
    memory_full: int
    """Error: the memory for waiting packets was full."""
    send_errors: int
    """Error: the system did not send them."""
    unknown_client: int
    """Error: for a client that is unknown."""
    stamped: int
    """Packets that carry feedback of a link."""
    lowest_index: int | None
    """Lowest feedback index (DRAI) written, if any."""
    late_ms_p50: float | None
    """Median delay beyond the configured one, if a packet was sent."""
    late_ms_p99: float | None
    late_ms_max: float | None


class PathReport(TypedDict):
    """Counters of both directions of a path since its start."""

    elapsed_s: float
    clients: int
    """Clients of a relay at the moment."""
    up: DirectionReport
    """To the server of a relay, or from the command behind a link."""
    down: DirectionReport
    warnings: list[str]
    """Where the path was not as configured; empty if it was."""


@contextmanager
def native_errors() -> Iterator[None]:
    """Turns errors of the native module into input errors and run errors."""
    try:
        yield
    except ScenarioError:
        raise
    except ValueError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise RunError(str(error)) from None
