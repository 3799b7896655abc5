"""What Netesto's scripts run, as scenarios: staggered streams, rate tests, size tests."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from weir.experiments import load, staggered
from weir.experiments.networks import LAN, WAN_10M, WAN_100M, Network
from weir.experiments.staggered import Timing
from weir.scenario.source import Source
from weir.scenario.sweep import Plan, plan

BASELINE = "cubic"
"""What Linux hosts use by default, and the scripts compare with."""

OTHERS = ("reno", "bbr", "vegas")

TWO_FLOWS = Timing("2-flow", ((0, 60), (23, 20)))
"""`tcpCA23` with D = 60 s: the second starts at D/3 + 3 and lasts D/3."""

THREE_FLOWS = Timing("3-flow", ((0, 60), (13, 40), (25, 20)))
"""The second starts at D/6 + 3 and lasts 2D/3, the third at D/3 + 5 and lasts D/3."""

BUFFERS = (0.5, 1, 2, 4, 8)
"""In bandwidth-delay products: 25 to 400 kB at 10 Mbit/s, 250 to 4000 kB at 100 Mbit/s."""

CLIENTS = 3
INSTANCES = (1, 2, 4, 8, 16, 32)
"""Of everything, per client."""

MIXES = {
    "1M": ("1mib",),
    "stream": (),
    "10K + 1M": ("10kib", "1mib"),
    "8M + 1M + 50K + 10K": ("8mib", "1mib", "50kib", "10kib"),
}
"""What each client does in a rate test; netperf's K and M are powers of two."""

RATE_STACKS = ("cubic", "bbr", "dctcp")
SIZE_STACKS = ("cubic", "bbr", "vegas")

LARGE_COUNTS = (1, 2, 4, 8, 16)
"""k of the size tests: each client has a stream, k large requests and a small one at a time."""

SIZE_BUFFERS = (0.5, 1, 8)

_WARMUP = 0.2


@dataclass(frozen=True, slots=True)
class Extent:
    """Contents of one size of the study."""

    streams: dict[str, int]
    """Repeats of the staggered tests, by network."""
    buffers: tuple[float, ...]
    others: tuple[str, ...]
    instances: tuple[int, ...]
    rate: tuple[float, int]
    """Seconds and repeats of a rate test."""
    size: dict[str, tuple[float, int]]
    """The same of a size test, by network."""
    large_counts: tuple[int, ...]


EXTENTS = {
    "small": Extent(
        streams={"wan-10m": 2},
        buffers=(0.5, 1, 8),
        others=("bbr",),
        instances=(1, 8),
        rate=(0.02, 2),
        size={"wan-10m": (45, 2)},
        large_counts=(1, 4),
    ),
    "full": Extent(
        streams={"wan-10m": 10, "wan-100m": 5},
        buffers=BUFFERS,
        others=OTHERS,
        instances=INSTANCES,
        rate=(0.4, 3),
        size={"wan-10m": (60, 5), "wan-100m": (20, 3), "lan-10g": (0.4, 3)},
        large_counts=LARGE_COUNTS,
    ),
}


@dataclass(frozen=True, slots=True)
class Streams:
    """One `tcpCA23` test over one buffer."""

    network: Network
    bdp: float
    timing: Timing
    stacks: tuple[str, ...]
    repeat: int

    @property
    def who(self) -> str:
        """The algorithm of all flows, or those of each in the order of their starts."""
        return self.stacks[0] if len(set(self.stacks)) == 1 else " then ".join(self.stacks)

    @property
    def label(self) -> str:
        """Test, network, algorithms, buffer."""
        return f"{self.timing.name}, {self.network.id}, {self.who}, {self.bdp:g} BDP"

    def scenario(self, seed: int) -> str:
        """Its flows at their times."""
        path = self.network.with_buffer(self.bdp)
        return staggered.scenario("netesto", path, self.stacks, self.timing, self.repeat, seed)


@dataclass(frozen=True, slots=True)
class Clients:
    """Three clients that ask a server, and stream to it, as often as said."""

    label: str
    network: Network
    stack: str
    loads: tuple[tuple[str, str, int], ...]
    """Name, size of the requests (empty for a stream) and how many there are of it."""
    seconds: float
    repeat: int

    def scenario(self, seed: int) -> str:
        """All of them from the beginning to the end."""
        wait = min(staggered.RANDOM_WAIT_S, self.seconds * _WARMUP / 4)
        flows = [
            load.flows(name, self.stack, count, wait, load.requests(size) if size else load.STREAM)
            for name, size, count in self.loads
        ]
        measure = load.measured(self.seconds, self.seconds * _WARMUP, self.repeat, seed)
        return "".join(['name = "netesto"\n', self.network.topology(), *flows, measure])


def stream_tests(extent: Extent) -> Iterator[Streams]:
    """`tcpCA23`: baseline, each other algorithm, and both orders of the two, over every buffer."""
    for network in (WAN_100M, WAN_10M):
        if network.id not in extent.streams:
            continue
        repeat = extent.streams[network.id]
        for bdp in extent.buffers:
            for stack in (BASELINE, *extent.others):
                for timing in (TWO_FLOWS, THREE_FLOWS):
                    yield Streams(network, bdp, timing, (stack,) * len(timing.flows), repeat)
            for stack in extent.others:
                yield Streams(network, bdp, TWO_FLOWS, (BASELINE, stack), repeat)
                yield Streams(network, bdp, TWO_FLOWS, (stack, BASELINE), repeat)


def rate_label(mix: str, instances: int, stack: str) -> str:
    """The case of a rate test."""
    return f"rate test, {instances} x {mix}, {stack}"


def rate_tests(extent: Extent) -> Iterator[Clients]:
    """`rateTest` with three clients on the LAN."""
    seconds, repeat = extent.rate
    for mix, sizes in MIXES.items():
        for instances in extent.instances:
            count = CLIENTS * instances
            loads = [(flow_name(size), size, count) for size in sizes or ("",)]
            for stack in RATE_STACKS:
                label = rate_label(mix, instances, stack)
                yield Clients(label, LAN.marking(), stack, tuple(loads), seconds, repeat)


def flow_name(size: str) -> str:
    """The flows of one size, as in `10K`; without a size they are streams."""
    return size.replace("kib", "K").replace("mib", "M") or "stream"


def size_label(network: Network, bdp: float | None, count: int, stack: str) -> str:
    """The case of a size test."""
    buffer = "" if bdp is None else f", {bdp:g} BDP"
    return f"size test, {network.id}{buffer}, {count} large, {stack}"


def size_tests(extent: Extent) -> Iterator[Clients]:
    """Each client a stream, k connections of large requests and one of small ones."""
    for network in (LAN, WAN_100M, WAN_10M):
        if network.id not in extent.size:
            continue
        seconds, repeat = extent.size[network.id]
        for bdp in size_buffers(network):
            path = network.marking() if bdp is None else network.with_buffer(bdp)
            for count in extent.large_counts:
                loads = _sizes(network, count)
                for stack in SIZE_STACKS:
                    label = size_label(network, bdp, count, stack)
                    yield Clients(label, path, stack, loads, seconds, repeat)


def size_buffers(network: Network) -> Sequence[float | None]:
    """The buffers of its size tests: the router's, or the switch as it is."""
    return SIZE_BUFFERS if network.has_router else (None,)


def small_and_large(network: Network) -> tuple[str, str]:
    """The sizes of the small and of the large requests."""
    return ("10kib", "1mib") if network.has_router else ("1mib", "8mib")


def study_plan(extent: Extent, size: str, repeat: int | None, seed: int) -> Plan:
    """Every run of the study."""
    words = ["weir", "study", "netesto", "--size", size, "--seed", str(seed)]
    if repeat is not None:
        words += ["--repeat", str(repeat)]
    tests: list[Streams | Clients] = [
        *stream_tests(extent),
        *rate_tests(extent),
        *size_tests(extent),
    ]
    sources = {
        test.label: Source(
            (test if repeat is None else replace(test, repeat=repeat)).scenario(seed),
            "study netesto",
        )
        for test in tests
    }
    return plan("netesto", shlex.join(words), sources, {})


def _sizes(network: Network, count: int) -> tuple[tuple[str, str, int], ...]:
    small, large = small_and_large(network)
    return (
        ("stream", "", CLIENTS),
        ("large", large, CLIENTS * count),
        ("small", small, CLIENTS),
    )
