"""Policers in loads that do not show which packets were lost: datagrams, and the kernel's TCP."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from weir.probes.policing import Counters, Datagram, Policer, _packets, of_counters, of_datagrams

LENGTH = 1200
COUNT = 6_000
GAP_NS = 480_000
"""20 Mbit/s of data."""


def load(arrives: Callable[[int], int | None]) -> list[Datagram]:
    """What arrives of datagrams at a constant rate; `arrives` has the wait of each one."""
    sent = [(number, number * GAP_NS) for number in range(COUNT)]
    waits = [(number, at, arrives(number)) for number, at in sent]
    return [Datagram(n, at, at + 20_000_000 + wait) for n, at, wait in waits if wait is not None]


def bucket(mbps: float, burst: float) -> Callable[[int], int | None]:
    """A token bucket without a queue."""
    tokens = burst

    def arrives(_number: int) -> int | None:
        nonlocal tokens
        tokens = min(burst, tokens + mbps * 1e6 / 8 * GAP_NS / 1e9)
        if tokens < LENGTH:
            return None
        tokens -= LENGTH
        return 0

    return arrives


def queue(mbps: float, packets: int) -> Callable[[int], int | None]:
    """A drop-tail queue in front of a link."""
    free = 0.0

    def arrives(number: int) -> int | None:
        nonlocal free
        now, each = number * GAP_NS, LENGTH * 8e3 / mbps
        if free > now + packets * each:
            return None
        free = max(free, now) + each
        return int(free - now)

    return arrives


def randomly(share: float, seed: int) -> Callable[[int], int | None]:
    generator = np.random.default_rng(seed)
    return lambda _: None if generator.random() < share else 0


@pytest.mark.parametrize(("mbps", "burst"), [(10, 50_000), (19, 30_000), (2, 5_000)])
def test_datagrams_show_a_policer(mbps: float, burst: int) -> None:
    found = of_datagrams(load(bucket(mbps, burst)), LENGTH)
    assert found is not None
    assert found.mbps == pytest.approx(mbps, rel=0.01)
    # What came in meanwhile passed too.
    assert burst - LENGTH <= found.burst_bytes <= burst / (1 - mbps / 20) + 2 * LENGTH
    assert burst - 3 * LENGTH <= found.bucket_bytes <= burst


@pytest.mark.parametrize("packets", [2, 6, 100])
def test_a_full_queue_is_no_policer(packets: int) -> None:
    first = load(queue(10, packets))
    assert len(first) < 0.6 * COUNT
    assert of_datagrams(first, LENGTH) is None


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_random_losses_of_datagrams_are_no_policer(share: float) -> None:
    found = [of_datagrams(load(randomly(share, seed)), LENGTH) for seed in range(50)]
    assert found == [None] * 50


def test_too_few_losses_of_datagrams_show_nothing() -> None:
    assert of_datagrams([], LENGTH) is None
    assert of_datagrams(load(lambda _: 0), LENGTH) is None
    first = load(bucket(19, 30_000))
    few, enough = ([one for one in first if one.number < count] for count in (1_900, 2_400))
    assert of_datagrams(few, LENGTH) is None
    assert of_datagrams(enough, LENGTH) is not None


def sawtooth(drops: Callable[[float, int], int]) -> list[Counters]:
    """Counters of a sender whose window grows by a segment per round trip, and halves after losses.

    `drops` says how many of the segments of a round trip are lost.
    """
    counters, window, delivered, retransmits = list[Counters](), 40, 0, 0
    for round_trip in range(500):
        lost = drops(round_trip * 0.04, window)
        for part in (0, 1):
            at = round_trip * 40_000_000 + part * 20_000_000
            counters.append(Counters(at, delivered, retransmits, 40_000))
            delivered += (window - lost) // 2
        delivered += (window - lost) % 2
        retransmits += lost
        window = window // 2 + 1 if lost else window + 1
    return counters


def behind_a_bucket() -> list[Counters]:
    """The counters behind a policer of 8 Mbit/s."""
    tokens, before = 40_000.0, 0.0

    def drops(at: float, window: int) -> int:
        nonlocal tokens, before
        tokens = min(40_000, tokens + (at - before) * 1e6)
        before = at
        passes = min(window, int(tokens / 1448))
        tokens -= passes * 1448
        return window - passes

    return sawtooth(drops)


def test_a_queue_that_is_always_there_is_no_policer() -> None:
    first, *rest = behind_a_bucket()
    assert of_counters([first, *(one._replace(srtt_us=80_000) for one in rest)], 1448) is None


def test_only_the_rtt_before_losses_counts() -> None:
    """Another flow may have filled the queue at other times."""
    readings = behind_a_bucket()
    losing = [now.retransmits > one.retransmits for one, now in itertools.pairwise(readings)]
    assert 1 < sum(losing) < len(losing) / 2
    busy = [
        one if place == 0 or loses else one._replace(srtt_us=2 * one.srtt_us)
        for place, (one, loses) in enumerate(zip(readings, [*losing, True], strict=True))
    ]
    assert of_counters(busy, 1448) is not None


def test_counters_become_packets_at_even_intervals() -> None:
    readings = [Counters(0, 10, 0, 40_000), Counters(20_000_000, 12, 1, 41_000)]
    arrived = [(at, 1448, 41_000, False) for at in (0, 10_000_000)]
    assert list(_packets(readings, 1448)) == [*arrived, (20_000_000, 1448, None, True)]


def test_counters_show_a_policer() -> None:
    found = of_counters(behind_a_bucket(), 1448)
    assert isinstance(found, Policer)
    # CUBIC or Reno use a policer up to between 3/4 and all of its rate.
    assert 0.7 * 8 < found.mbps < 8.1


def test_random_losses_of_tcp_are_no_policer() -> None:
    for seed in range(10):
        generator = np.random.default_rng(seed)

        def drops(_at: float, window: int, draw: np.random.Generator = generator) -> int:
            return int(draw.binomial(window, 0.005))

        assert of_counters(sawtooth(drops), 1448) is None
