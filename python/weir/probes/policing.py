"""Whether a policer drops the packets of a load: a token bucket without a queue.

The kernel's TCP does not report which packets were lost, only counters: they become packets of the
same number, for the rule of `weir read`. Datagrams at a constant rate find the bucket almost empty
all the time, so that its fill shows nothing. For them there is a rule of our own: what a bucket
lets through has an even rate, while random losses leave an uneven one, and no queue grows.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from weir import _native

LEAST_LOST = 80
"""Losses of datagrams; with fewer, random ones may look even."""

COUNT_S = 0.02
"""Between two readings of the kernel's counters."""

_EVEN = 0.35
"""Largest deviation from an even rate, in standard deviations of the number of random losses. That
of random losses is smaller in 1 of 3000 cases, by the distribution of Kolmogorov's statistic."""
_INFLATED = 1.3
"""RTT over the least one from which on it counts as that of a queue, as in that rule."""
_WAITING = 1.0
"""Delay above the least one, in datagrams at the rate: a full queue has at least two."""


class Policer(NamedTuple):
    """A token bucket."""

    mbps: float
    """Of data."""
    burst_bytes: int
    """Data before the first loss."""
    bucket_bytes: int
    """Data that the bucket holds."""


class Counters(NamedTuple):
    """What the kernel counts of a connection, at one time of the monotonic clock."""

    time_ns: int
    delivered: int
    """Segments that arrived, also out of order."""
    retransmits: int
    srtt_us: int


class Datagram(NamedTuple):
    """One that arrived."""

    number: int
    sent_ns: int
    """On the sender's clock."""
    arrived_ns: int


def of_counters(readings: Sequence[Counters], segment_bytes: int) -> Policer | None:
    """The policer of a connection of the kernel's TCP, by the rule of `weir read`.

    That rule compares RTTs with those under load. Here the first one is known, before the load: a
    queue that is there all the time, as behind several flows of BBR, is no policer.
    """
    at_losses = [
        before.srtt_us
        for before, now in itertools.pairwise(readings)
        if now.retransmits > before.retransmits
    ]
    least = min((one.srtt_us for one in readings if one.srtt_us), default=0)
    if not at_losses or statistics.median(at_losses) > _INFLATED * least:
        return None
    found = _native.find_policer(list(_packets(readings, segment_bytes)))
    if found is None:
        return None
    bits_per_s, burst, bucket = found
    return Policer(bits_per_s / 1e6, burst, bucket)


def _packets(
    readings: Sequence[Counters], length: int
) -> Iterator[tuple[int, int, int | None, bool]]:
    """Between two readings: what arrived at even intervals, then what was sent again as lost.

    A segment is sent again when those after it are acknowledged, so that both are late alike.
    """
    for before, now in itertools.pairwise(readings):
        step = now.time_ns - before.time_ns
        arrived = now.delivered - before.delivered
        rtt = now.srtt_us or None
        for place in range(arrived):
            yield before.time_ns + step * place // arrived, length, rtt, False
        for _ in range(now.retransmits - before.retransmits):
            yield now.time_ns, length, None, True


def of_datagrams(first: Sequence[Datagram], length: int) -> Policer | None:
    """The policer of a load of datagrams that were sent at a constant rate."""
    arrived = {one.number: one for one in first}
    last = max(arrived, default=-1)
    lost = [number for number in range(last) if number not in arrived]
    if len(lost) < LEAST_LOST:
        return None
    after = sorted(number for number in arrived if number > lost[0])
    # The rate is that from a datagram that passed to one that did.
    begin, end = arrived[after[0]], arrived[after[-1]]
    seconds = (end.sent_ns - begin.sent_ns) / 1e9
    if seconds <= 0:
        return None
    per_s = (len(after) - 1) / seconds
    if not _is_even([arrived[n] for n in after], per_s) or _waits(arrived, lost, per_s):
        return None
    bits_per_s = per_s * length * 8
    before = [(arrived[n].sent_ns, length) for n in range(lost[0])]
    bucket = _native.bucket_size(before, bits_per_s, begin.sent_ns)
    return Policer(bits_per_s / 1e6, lost[0] * length, round(bucket))


def _is_even(passed: Sequence[Datagram], per_s: float) -> bool:
    """Whether what passed has a more even rate than random losses leave."""
    numbers = passed[-1].number - passed[0].number
    share = (len(passed) - 1) / numbers
    random = math.sqrt(numbers * share * (1 - share))
    start = passed[0].sent_ns
    off = [place - (one.sent_ns - start) / 1e9 * per_s for place, one in enumerate(passed)]
    return max(map(abs, off)) < _EVEN * random


def _waits(arrived: dict[int, Datagram], lost: Sequence[int], per_s: float) -> bool:
    """Whether datagrams just before the first losses waited in a queue, which was empty before."""
    delays = {number: one.arrived_ns - one.sent_ns for number, one in arrived.items()}
    least = min((delays[n] for n in range(lost[0])), default=min(delays.values()))
    near = [delays[n - 1] - least for n in lost[:LEAST_LOST] if n - 1 in delays]
    return not near or statistics.median(near) / 1e9 * per_s >= _WAITING
