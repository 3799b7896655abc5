"""The load of a path test over UDP: datagrams of one length at a rate, and what arrives of them.

The two threads of an end are in Rust (`crates/links/src/datagrams`).
"""

from __future__ import annotations

from typing import Any

from weir import _native
from weir.probes.wire import DATA

LENGTH = 1200
"""UDP payload: what every path carries (RFC 9000 §14)."""
HEADERS = 20 + 8
"""Bytes of IPv4 and UDP, which the rate includes."""


class DatagramLoad:
    """One end of a load: it receives, and sends if there is a rate."""

    def __init__(self, path: _native.PathSocket, token: bytes, rate_bps: float | None) -> None:
        """Takes the socket."""
        self._path, self._token, self._rate_bps = path, token, rate_bps
        self._load: _native.DatagramLoad | None = None
        self._sent: tuple[int, int] | None = None
        self._received: dict[str, Any] | None = None

    @property
    def moved(self) -> int:
        """Bytes sent and received so far."""
        return 0 if self._load is None else self._load.received_bytes + self._load.sent * LENGTH

    def start(self) -> None:
        """Starts it."""
        self._load = _native.DatagramLoad(self._path, self._token, DATA, LENGTH, self._rate_bps)

    def end(self) -> None:
        """Ends the sending. What is still on its way is received."""
        if self._load is not None and self._sent is None:
            self._sent = self._load.end_sending()

    def record(self) -> dict[str, Any]:
        """Ends the receiving; what was sent and received, on this machine's monotonic clock."""
        self.end()
        if self._load is not None and self._received is None:
            self._received = self._load.end_receiving()
        return {"sent": self._sent, "received": self._received}
