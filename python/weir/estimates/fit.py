"""From one connection of a capture to a path."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from weir import _native
from weir.base.errors import InputError
from weir.estimates import changes, cross, jitter, losses, rate
from weir.estimates.packets import Packets
from weir.estimates.path import Path
from weir.estimates.quantity import Quantity, share

_ACK_BYTES = 52
_SYN_BYTES = 60
_FEWEST = 50
_TRAIN = 16
_SHORT_TRAIN = 2
_FEWEST_REORDERED = 3


def fit(row: dict[str, Any], table: pl.DataFrame) -> Path:
    """The path of the connection of `row`, whose data packets are in `table`.

    Raises:
        InputError: too little of it was captured, or not at the sender.
    """
    packets = Packets.of(row, table)
    if row["capture_point"] in ("receiver", "middle"):
        raise InputError(
            f"{row['file']}: captured at the {row['capture_point']}; a model needs a capture made "
            "at the sender"
        )
    if packets.samples.size < _FEWEST or np.isnan(packets.least_rtt_s):
        raise InputError(
            f"{row['file']}: the largest connection has {packets.samples.size} round-trip samples; "
            f"a model needs {_FEWEST}"
        )
    found = rate.trains(packets, _TRAIN)
    if found.size.size < rate.LEAST_TRAINS:
        found = rate.trains(packets, _SHORT_TRAIN)
    has_trains = found.size.size >= rate.LEAST_TRAINS
    # A lower bound of the rate does not show which packets arrived together.
    spread = jitter.spread_s(packets, rate.constant(found).value) if has_trains else 0.0
    if spread:
        found = rate.trains(packets, jitter.TRAIN, jitter.WAITS * spread)
        has_trains = found.size.size >= rate.LEAST_TRAINS
    steps = changes.steps(found) if has_trains and not spread else ()
    has_trains = has_trains and (bool(steps) or rate.agree(found))
    mbps = _rate(packets, found if has_trains else None, spread)
    is_plain = has_trains and not steps and not spread
    shared = cross.find(packets, mbps.value) if is_plain else None
    mbps = shared.rate if shared else mbps
    # Packets of others wait too, and only their time shows. A wait at a changing rate says less.
    rate_bytes = mbps.value * 1e6 / 8
    waiting = packets.counted(rate_bytes) if steps else packets.waiting(rate_bytes)
    separated = losses.separate(packets, waiting)
    reorder, late = _reordering(packets, row)
    policer, burst = _policer(row, packets)
    if policer and separated.overflows and policer.value > OF_LINK * mbps.value:
        policer = burst = None  # a full short queue looks like a bucket with the link's rate
    delay = _delay(row, packets, mbps.value)
    is_trace = len(steps) > changes.MOST_STEPS
    largest = jitter.largest_ms(spread) if spread else None
    return Path(
        mbps,
        _around(delay, largest) if largest else delay,
        separated.queue_bytes,
        Quantity(0.0, 0.0, separated.random.high) if policer else separated.random,
        packets.full,
        () if is_trace else steps,
        policer,
        burst,
        reorder,
        late,
        None if policer else separated.run,
        trace=changes.trace(packets, steps, delay.value / 1e3) if is_trace else (),
        cross=shared.cross if shared else None,
        jitter_ms=largest,
    )


def _rate(packets: Packets, found: rate.PacketTrains | None, spread: float) -> Quantity:
    """The rate of trains; without them that of bursts, unless jitter moves these, or a bound."""
    if found is not None:
        return rate.constant(found)
    of_bursts = None if spread else rate.of_bursts(packets)
    return of_bursts or rate.at_least(packets)


def _around(delay: Quantity, largest: Quantity) -> Quantity:
    """The delay around which jitter varies: the smallest round trip had the largest deviation."""
    low, high = delay.low + largest.low, (delay.high or delay.value) + (largest.high or 0.0)
    return Quantity(delay.value + largest.value, low, high)


def _delay(row: dict[str, Any], packets: Packets, mbps: float) -> Quantity:
    """The least round trip, less what the bottleneck needs to send the packets themselves."""
    ms_per_byte = 8e-3 / mbps
    of_data = packets.least_rtt_s * 1e3 - (packets.full + _ACK_BYTES) * ms_per_byte
    handshake = row["handshake_rtt_ms"]
    of_syn = of_data if handshake is None else handshake - 2 * _SYN_BYTES * ms_per_byte
    least, most = sorted((of_data, of_syn))
    least = max(least, 0.0)
    return Quantity(least, max(least - _CLOCK_MS, 0.0), max(most, least) + _CLOCK_MS)


def _reordering(
    packets: Packets, row: dict[str, Any]
) -> tuple[Quantity, Quantity] | tuple[None, None]:
    """The share of packets that arrived after later ones, and by how much they were late."""
    late = packets.overtaken
    if late.size < _FEWEST_REORDERED or not row["reordered"]:
        return None, None
    extra = packets.rtt_s[late] - packets.least_rtt_s - packets.wait_before(late, _FEWEST)
    extra = extra[~np.isnan(extra)] * 1e3
    if extra.size < _FEWEST_REORDERED:
        return None, None
    low, middle, high = (float(np.quantile(extra, q)) for q in (0.025, 0.5, 0.975))
    delay = Quantity(max(middle, _CLOCK_MS), max(low, 0.0), high)
    return share(int(late.size), int((~packets.lost).sum())), delay


def _policer(
    row: dict[str, Any], packets: Packets
) -> tuple[Quantity, Quantity] | tuple[None, None]:
    """The token bucket that `weir read` recognises, in IP bytes."""
    if row["policer_mbps"] is None:
        return None, None
    return bucket(packets, row["policer_mbps"] * packets.full / row["mss_bytes"])


def bucket(packets: Packets, mbps: float | None = None) -> tuple[Quantity, Quantity]:
    """A token bucket that was full at the beginning, and whose tokens are gone at the first loss.

    Without `mbps` its rate is what passed from the first loss to the last (Flach et al. 2016).
    """
    first, last = np.flatnonzero(packets.lost)[[0, -1]]
    if mbps is None:
        passed = packets.size[first:last][~packets.lost[first:last]].sum()
        mbps = float(passed / (packets.sent_s[last] - packets.sent_s[first]) * 8e-6)
    times = ((packets.sent_s[: first + 1] - packets.sent_s[0]) * 1e9).astype(int).tolist()
    sizes = packets.size[:first].astype(int).tolist()
    before = list(zip(times[:-1], sizes, strict=True))
    burst = _native.bucket_size(before, mbps * 1e6, times[-1])
    return with_errors(mbps, max(burst, float(packets.full)))


def with_errors(mbps: float, burst: float) -> tuple[Quantity, Quantity]:
    """Rate and size of a token bucket, with their intervals."""
    return (
        Quantity(mbps, mbps * (1 - _POLICER_ERROR), mbps * (1 + _POLICER_ERROR)),
        Quantity(burst, burst * (1 - _BURST_ERROR), burst * (1 + _BURST_ERROR)),
    )


_CLOCK_MS = 0.05
OF_LINK = 0.95
"""Share of the link's rate above which a policer is its full queue: Flach's rule is off by 5 %."""
_POLICER_ERROR = 0.05
"""Flach et al. 2016, §3.2: most estimates are within 5 % of the configured rate."""
_BURST_ERROR = 0.15
