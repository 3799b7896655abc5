"""The data packets of a connection, as what a first-in, first-out path did to each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Packets:
    """Data packets in the order of sending."""

    sent_s: Floats
    size: Floats
    """IP bytes, headers included."""
    rtt_s: Floats
    """NaN without a sample."""
    lost: Flags
    full: int
    """IP bytes of a full packet."""
    samples: Indices
    """Packets with an RTT that no later packet overtook."""
    overtaken: Indices
    """Packets that were acknowledged after a later one."""
    least_rtt_s: float
    """The least RTT of a full packet."""

    @classmethod
    def of(cls, row: dict[str, Any], table: pl.DataFrame) -> Packets:
        """The packets of the connection of `row`, from table `packets` of `weir.reading`."""
        own = table.filter(pl.col("connection") == row["connection"])
        payload = own["payload_bytes"].to_numpy().astype(float)
        mss, header = int(row["mss_bytes"]), int(row["header_bytes"])
        size = payload + header * np.ceil(payload / mss)
        rtt = own["rtt_ms"].cast(pl.Float64).fill_null(np.nan).to_numpy() / 1e3
        lost = own["is_lost"].to_numpy().astype(bool)
        sent = own["t_s"].to_numpy().astype(float)
        timed = np.flatnonzero(~np.isnan(rtt) & ~lost)
        acked = sent[timed] + rtt[timed]
        later = np.minimum.accumulate(acked[::-1])[::-1] if timed.size else acked
        in_order = acked <= later
        samples = timed[in_order]
        whole = samples[payload[samples] >= mss]
        least = float(rtt[whole].min()) if whole.size else float("nan")
        return cls(sent, size, rtt, lost, mss + header, samples, timed[~in_order], least)

    @property
    def waits_s(self) -> Floats:
        """The time in queues of each of the `samples`."""
        return self.rtt_s[self.samples] - self.least_rtt_s

    @property
    def acked_s(self) -> Floats:
        """When each of the `samples` was acknowledged."""
        return self.sent_s[self.samples] + self.rtt_s[self.samples]

    @property
    def delivered(self) -> Floats:
        """IP bytes delivered, up to and with each packet."""
        return np.cumsum(np.where(self.lost, 0.0, self.size))

    def waiting(self, rate: float) -> Floats:
        """Bytes in the queue before each packet, from waits at `rate` bytes per second."""
        found = self.wait_before(np.arange(self.sent_s.size), _NEAR) * rate
        found[self.samples] = self.waits_s * rate
        return found

    def counted(self, rate: float) -> Floats:
        """The same at any rate: what was sent before and had not left the bottleneck.

        `rate` is that at the least round trip. It also counts none of other senders.
        """
        delay = self.least_rtt_s - self.full / rate
        place = np.searchsorted(self.acked_s, self.sent_s + delay, side="right") - 1
        left = np.where(place >= 0, self.delivered[self.samples[place]], 0.0)
        sent = np.concatenate([[0.0], self.delivered[:-1]])
        # The packet that the bottleneck is sending counts as sent.
        found: Floats = np.maximum(sent - left - self.full, 0.0)
        found[np.isnan(self.wait_before(np.arange(self.sent_s.size), _NEAR))] = np.nan
        return found

    def wait_before(self, packets: Indices, most: int) -> Floats:
        """The time in queues of the last sample before each packet, NaN beyond `most` packets."""
        found = np.full(packets.size, np.nan)
        if not self.samples.size:
            return found
        place = np.searchsorted(self.samples, packets) - 1
        known = place >= 0
        near = np.zeros(packets.size, bool)
        near[known] = packets[known] - self.samples[place[known]] <= most
        found[near] = self.waits_s[place[near]]
        return found


_NEAR = 64
"""Packets within which a sample says how long the queue was."""
