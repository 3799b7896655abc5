"""What the chapter measures, as scenarios: staggered flows, requests beside streams, buffers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from weir.experiments import load, staggered
from weir.experiments.networks import LAN, NETWORKS, WAN_10G, WAN_10M, WAN_100M, Network
from weir.experiments.staggered import Timing
from weir.scenario.source import Source
from weir.scenario.sweep import Plan, plan

_FOUR = ("reno", "cubic", "bbr", "vegas")

AT_SWITCH = (*_FOUR, "dctcp")
"""Those of figures 15 to 19 at 10 Gbit/s, one or two of each kind. Reno and CUBIC go by losses and
are what systems use by default; BBR goes by a model of the path; Vegas by delay, as does NV of
Netesto's author; DCTCP by marks, and is made for the LAN of the tests."""

AT_ROUTER = (*_FOUR, "westwood")
"""Those of figure 20 and the tests behind the router, which does not mark. DCTCP without marks is
Reno; Westwood+, whose window after a loss is the bandwidth it has measured, takes its place."""

SIX = (*AT_ROUTER, "veno")

TWO_FLOWS = Timing("2-flow", ((0, 60), (22, 20)))
THREE_FLOWS = Timing("3-flow", ((0, 60), (12, 40), (26, 20)))

STREAMS = (1, 2, 4, 8, 16)
FAR_STREAMS = (1, 4, 16)
FAR = (WAN_10M, WAN_100M, WAN_10G)
"""Where the requests go over the round trip of a WAN, 40 or 10 ms."""
REQUESTS = {"1 MB": "1mib", "10 KB": "10kib"}
"""Sizes as netperf spells them: its K and M are powers of two."""

BUFFERS = (0.125, 0.25, 0.5, 1, 2, 4, 8)
"""Of figure 20, in bandwidth-delay products."""

RIVAL_BUFFERS = (0.25, 0.5, 1, 2, 4, 8, 16)
"""Of BBR against CUBIC."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Experiments of one size of the study.

    Pairs are the share of the chapter's times and the number of repeats, by network.
    """

    same: Mapping[str, tuple[float, int]]
    mixed: Mapping[str, tuple[float, int]]
    rpc: tuple[float, int]
    """Seconds and repeats of a run of figures 18 and 19."""
    far: Mapping[str, tuple[float, int]]
    """The same of requests over the round trip of a WAN, by network."""
    mix: tuple[float, int]
    """The same of both sizes of requests at once."""
    buffer: tuple[float, int]
    """The same of figure 20."""
    rivals: tuple[float, int]
    """The same of BBR against CUBIC."""

    def seconds(self, network: str) -> float:
        """How long the staggered tests take there; the chapter's take 60 s."""
        return 60 * self.same[network][0]

    def is_long_enough(self, network: str) -> bool:
        """Whether flows have the time to settle, which takes hundreds of round trips."""
        rtt_s = next(n.full_rtt_s for n in NETWORKS if n.id == network)
        return self.seconds(network) >= _SETTLING_RTTS * rtt_s

    @property
    def long_enough(self) -> list[str]:
        """The networks on which they have."""
        return [network for network in self.same if self.is_long_enough(network)]

    def repeated(self, repeat: int | None) -> Extent:
        """The same with every number of repeats replaced, unless by None."""
        if repeat is None:
            return self
        return Extent(
            {network: (scale, repeat) for network, (scale, _) in self.same.items()},
            {network: (scale, repeat) for network, (scale, _) in self.mixed.items()},
            (self.rpc[0], repeat),
            {network: (seconds, repeat) for network, (seconds, _) in self.far.items()},
            (self.mix[0], repeat),
            (self.buffer[0], repeat),
            (self.rivals[0], repeat),
        )


EXTENTS = {
    "small": Extent(
        same={
            "lan-10g": (1 / 1200, 1),
            "wan-10g": (1 / 120, 1),
            "wan-100m": (1 / 4, 1),
            "wan-10m": (1, 4),
            "wan-100m-10ms": (1 / 8, 1),
            "wan-10m-10ms": (1, 1),
        },
        mixed={
            "lan-10g": (1 / 1200, 1),
            "wan-10g": (1 / 120, 1),
            "wan-100m": (1 / 4, 1),
            "wan-10m": (1, 1),
            "wan-100m-10ms": (1 / 8, 1),
            "wan-10m-10ms": (1, 1),
        },
        rpc=(0.03, 2),
        far={"wan-100m": (6, 1)},
        mix=(0.03, 1),
        buffer=(60, 2),
        rivals=(60, 2),
    ),
    "full": Extent(
        same={
            "lan-10g": (1 / 10, 3),
            "wan-10g": (1, 2),
            "wan-100m": (1, 5),
            "wan-10m": (1, 10),
            "wan-100m-10ms": (1, 5),
            "wan-10m-10ms": (1, 10),
        },
        mixed={
            "lan-10g": (1 / 60, 2),
            "wan-10g": (1, 1),
            "wan-100m": (1, 5),
            "wan-10m": (1, 10),
            "wan-100m-10ms": (1, 2),
            "wan-10m-10ms": (1, 5),
        },
        rpc=(1, 5),
        far={"wan-10m": (60, 3), "wan-100m": (30, 3), "wan-10g": (2, 1)},
        mix=(1, 5),
        buffer=(60, 20),
        rivals=(180, 10),
    ),
}

_WARMUP = 0.2
"""The share of a run before its measurement, in which streams settle."""

_SETTLING_RTTS = 500

_SETTLED_S = 20.0
"""The same for BBR and CUBIC, in seconds."""


class Experiment(Protocol):
    """One case of the study."""

    @property
    def label(self) -> str:
        """Its name, which no other has."""
        ...

    def scenario(self, seed: int) -> str:
        """It as a scenario whose repeats have this seed and the following ones."""
        ...


@dataclass(frozen=True, slots=True)
class Staggered:
    """A 2-flow or 3-flow test."""

    network: Network
    timing: Timing
    stacks: tuple[str, ...]
    repeat: int

    @property
    def is_mixed(self) -> bool:
        """Whether its flows use several algorithms."""
        return len(set(self.stacks)) > 1

    @property
    def who(self) -> str:
        """The algorithm of all flows, or those of each in the order of their starts."""
        return " then ".join(self.stacks) if self.is_mixed else self.stacks[0]

    @property
    def label(self) -> str:
        """Test, network, algorithms."""
        return f"{self.timing.name}, {self.network.id}, {self.who}"

    def scenario(self, seed: int) -> str:
        """Its flows at their times."""
        return staggered.scenario("book", self.network, self.stacks, self.timing, self.repeat, seed)


@dataclass(frozen=True, slots=True)
class RequestsWithStreams:
    """Requests, one after the other, while streams of the same algorithm go on."""

    network: Network
    stack: str
    request: str
    streams: int
    name: str
    """Of the case; the figure it belongs to and what varies."""
    seconds: float
    repeat: int

    @property
    def label(self) -> str:
        """Figure, what varies, algorithm."""
        return f"{self.name}, {self.stack}"

    def scenario(self, seed: int) -> str:
        """Streams and one connection of requests, each answered by one byte."""
        return _beside_streams(self, {"requests": REQUESTS[self.request]}, seed)


@dataclass(frozen=True, slots=True)
class Mix:
    """Small and large requests, on a connection each, while streams of the same algorithm go on."""

    network: Network
    stack: str
    streams: int
    seconds: float
    repeat: int

    REQUESTS: ClassVar[Mapping[str, str]] = {"10KB": REQUESTS["10 KB"], "1MB": REQUESTS["1 MB"]}
    """By the names of the flows."""

    @property
    def label(self) -> str:
        """What varies, and the algorithm."""
        return f"mix, {self.streams} streams, {self.stack}"

    def scenario(self, seed: int) -> str:
        """Streams and both connections of requests."""
        return _beside_streams(self, self.REQUESTS, seed)


def _beside_streams(test: RequestsWithStreams | Mix, requests: Mapping[str, str], seed: int) -> str:
    """A connection for each kind of requests, each answered by one byte, and the streams."""
    wait = min(staggered.RANDOM_WAIT_S, test.seconds * _WARMUP / 4)
    parts = [
        f'name = "book"\n{test.network.topology()}',
        *(
            load.flows(name, test.stack, 1, wait, load.requests(size))
            for name, size in requests.items()
        ),
        load.flows("stream", test.stack, test.streams, wait, load.STREAM),
        load.measured(test.seconds, test.seconds * _WARMUP, test.repeat, seed),
    ]
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class Rivals:
    """BBR and CUBIC, started together, over one buffer."""

    bdp: float
    seconds: float
    repeat: int

    @property
    def label(self) -> str:
        """The pair and the buffer."""
        return f"bbr against cubic, {self.bdp:g} BDP"

    def scenario(self, seed: int) -> str:
        """One flow of each."""
        flows = [
            load.flows(stack, stack, 1, staggered.RANDOM_WAIT_S, load.STREAM)
            for stack in ("bbr", "cubic")
        ]
        measure = load.measured(self.seconds, _SETTLED_S, self.repeat, seed)
        topology = WAN_10M.with_buffer(self.bdp).topology()
        return "".join([f'name = "book"\n{topology}', *flows, measure])


def staggered_tests(extent: Extent) -> Iterator[Staggered]:
    """Every 2-flow and 3-flow test, same algorithm and mixed."""
    for network in NETWORKS:
        path = network.marking()
        scale, repeat = extent.same[network.id]
        stacks = SIX if network == WAN_10M else algorithms(network)
        for timing in (TWO_FLOWS, THREE_FLOWS):
            for stack in stacks:
                flows = (stack,) * len(timing.flows)
                yield Staggered(path, replace(timing, scale=scale), flows, repeat)
        if network.id in extent.mixed:
            scale, repeat = extent.mixed[network.id]
            for stacks in mixes(network):
                timing = TWO_FLOWS if len(stacks) == len(TWO_FLOWS.flows) else THREE_FLOWS
                yield Staggered(path, replace(timing, scale=scale), stacks, repeat)


def algorithms(network: Network) -> tuple[str, ...]:
    """The five that are compared there."""
    return AT_ROUTER if network.has_router else AT_SWITCH


def mixes(network: Network) -> Iterator[tuple[str, ...]]:
    """Which algorithms meet: CUBIC first or second with every other; where it is dear, with BBR."""
    known = SIX if network.has_router else AT_SWITCH
    others = ("bbr",) if network == WAN_10G else [s for s in known if s != "cubic"]
    for other in others:
        yield ("cubic", other)
        yield (other, "cubic")
    if network.has_router:
        yield ("reno", "cubic", "bbr")


def rpc_tests(extent: Extent) -> Iterator[RequestsWithStreams]:
    """Figures 18 and 19."""
    seconds, repeat = extent.rpc
    for request in REQUESTS:
        for streams in STREAMS:
            for stack in AT_SWITCH:
                name = f"{request}, {streams} streams"
                yield RequestsWithStreams(
                    LAN.marking(), stack, request, streams, name, seconds, repeat
                )


def far_tests(extent: Extent) -> Iterator[RequestsWithStreams]:
    """The requests of figures 18 and 19 over the round trips of WANs."""
    for network in FAR:
        if network.id in extent.far:
            yield from _far_tests(network, *extent.far[network.id])


def _far_tests(network: Network, seconds: float, repeat: int) -> Iterator[RequestsWithStreams]:
    for request in REQUESTS:
        for streams in FAR_STREAMS:
            for stack in algorithms(network):
                name = f"{request}, {streams} streams, {network.id}"
                yield RequestsWithStreams(
                    network.marking(), stack, request, streams, name, seconds, repeat
                )


def mix_tests(extent: Extent) -> Iterator[Mix]:
    """Both sizes of requests at once, at a rising load."""
    for streams in STREAMS:
        for stack in AT_SWITCH:
            yield Mix(LAN.marking(), stack, streams, *extent.mix)


def buffer_tests(extent: Extent) -> Iterator[RequestsWithStreams]:
    """Figure 20."""
    seconds, repeat = extent.buffer
    for bdp in BUFFERS:
        for stack in AT_ROUTER:
            path = WAN_10M.with_buffer(bdp)
            name = f"router, {bdp:g} BDP"
            yield RequestsWithStreams(path, stack, "10 KB", 1, name, seconds, repeat)


def experiments(extent: Extent) -> Iterator[Experiment]:
    """Everything."""
    yield from staggered_tests(extent)
    yield from rpc_tests(extent)
    yield from far_tests(extent)
    yield from mix_tests(extent)
    yield from buffer_tests(extent)
    yield from (Rivals(bdp, *extent.rivals) for bdp in RIVAL_BUFFERS)


def study_plan(extent: Extent, size: str, repeat: int | None, seed: int) -> Plan:
    """Every run of the study, the longest first, so that no core waits for one at the end."""
    words = ["weir", "study", "book", "--size", size, "--seed", str(seed)]
    if repeat is not None:
        words += ["--repeat", str(repeat)]
    sources = {
        experiment.label: Source(experiment.scenario(seed), "study book")
        for experiment in experiments(extent)
    }
    return plan("book", shlex.join(words), sources, {})
