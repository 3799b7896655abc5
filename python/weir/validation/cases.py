"""The scenarios that `weir validate` runs in the simulator and in a kernel.

Every path has 40 ms. The 2-flow and 3-flow tests are those of study `book`, shortened. A flow that
meets others waits a random time before it starts, because who wins may depend on a packet's time:
repeats then say how much it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType

from weir.controllers.kernel_cc.machine import KernelCcError, available
from weir.experiments.staggered import RANDOM_WAIT_S, Timing
from weir.recordings.guest import DRAWING
from weir.recordings.judge import Kind
from weir.recordings.truth import Flow
from weir.scenario.source import Source
from weir.studies.book.experiment import THREE_FLOWS, TWO_FLOWS

BUILT_IN = ("reno", "cubic", "bbr")
"""What nearly every Linux has."""

ALL = (*BUILT_IN, "vegas", "veno", "westwood", "dctcp", "illinois", "htcp")
"""Those of the set that asks our guest, which has all of Linux's."""

BPF = "bpf_"
"""Begins the name of what is registered with a kernel to do what its own controller would."""

MIXES = (("reno", "cubic"), ("cubic", "bbr"))

REQUESTS = "requests"
"""The name of the flow of requests."""

RTT_MS = 40
"""Of every path of the set."""

SAMPLES_MS = 10
"""How often both worlds are sampled."""


@dataclass(frozen=True, slots=True)
class Size:
    """How long each part of the set takes, in seconds."""

    alone: Mapping[tuple[int, int], float]
    """One flow, by the rate in Mbit/s and the buffer in bandwidth-delay products."""
    loss: float
    staggered: float
    mixed: float
    requests: float
    reordering: float
    late: tuple[tuple[str, int], ...]
    """Shares of packets that arrive late, and by how many milliseconds."""


SMALL = "small"
LATE_BY_MS = (5, 15, 25)
LATE_PERCENT = ("0.1", "0.5", "2", "5")

SIZES: Mapping[str, Size] = MappingProxyType(
    {
        SMALL: Size(
            {(10, 1): 12, (10, 4): 12, (100, 1): 6, (100, 4): 6},
            loss=12,
            staggered=15,
            mixed=12,
            requests=8,
            reordering=10,
            late=(("2", 25),),
        ),
        "full": Size(
            {(10, 1): 60, (10, 4): 60, (100, 1): 30, (100, 4): 30},
            loss=60,
            staggered=60,
            mixed=60,
            requests=30,
            reordering=10,
            late=tuple(product(LATE_PERCENT, LATE_BY_MS)),
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Scene:
    """One scenario of the set."""

    name: str
    kind: Kind
    flows: tuple[Flow, ...]
    source: Source
    """In the kernel."""

    mss: int = 1_448
    rtt_ms: int = RTT_MS
    simulations: int = 0
    """Number of simulations, if not that of the kernel's runs."""
    group: str = ""
    """The kind of a random path."""

    @property
    def simulated(self) -> Source:
        """In the simulator, which has what is registered with a kernel under its plain name."""
        source = self.source
        for number, flow in enumerate(self.flows):
            if flow.cc.startswith(BPF):
                source = source.with_override(f"flow.{number}.stack", flow.cc.removeprefix(BPF))
        return source

    @property
    def draws(self) -> bool:
        """Whether anything in it is random, so that means over repeats are compared."""
        return self.kind != "deterministic"

    @property
    def competes(self) -> bool:
        """Whether flows meet in it, so that single packets decide who backs off."""
        return len(self.flows) > 1


def registered() -> tuple[str, ...]:
    """What `weir stack bpf` has given this machine's kernel, and the simulator has too."""
    try:
        there = available()
    except KernelCcError:
        return ()
    return tuple(f"{BPF}{cc}" for cc in ALL if f"{BPF}{cc}" in there)


def scenes(size: Size, algorithms: Sequence[str]) -> Iterator[Scene]:
    """The set for these congestion controls."""
    for (rate, bdp), seconds in size.alone.items():
        for cc in algorithms:
            flows: tuple[Flow, ...] = (Flow(cc, 0.0, seconds),)
            kind: Kind = "drawn" if cc in DRAWING else "deterministic"
            yield _scene(f"{rate}m-{bdp}bdp-{cc}", kind, flows, rate=rate, bdp=bdp)
    for cc in algorithms:
        flows = (Flow(cc, 0.0, size.loss),)
        yield _scene(f"10m-loss1-{cc}", "loss", flows, forward={"loss": "1%"})
    for timing in (TWO_FLOWS, THREE_FLOWS):
        for cc in BUILT_IN:
            yield _scene(f"10m-{timing.name}-{cc}", "shared", _staggered(timing, size, cc))
    for mix in MIXES:
        flows = tuple(Flow(cc, 0.0, size.mixed) for cc in mix)
        yield _scene(f"10m-{'-'.join(mix)}", "mix", flows)
    for cc in BUILT_IN:
        flows = (Flow(cc, 0.0, size.requests), Flow(cc, 0.0, size.requests))
        yield _scene(f"10m-rpc-{cc}", "requests", flows)
    for (percent, by_ms), cc in product(size.late, BUILT_IN):
        flows = (Flow(cc, 0.0, size.reordering),)
        name = f"20m-late{percent}-{by_ms}ms-{cc}"
        late = {"reorder": f"{percent}%", "reorder_delay": f"{by_ms}ms"}
        yield _scene(name, "reordering", flows, rate=20, forward=late)


def _staggered(timing: Timing, size: Size, cc: str) -> tuple[Flow, ...]:
    scaled = replace(timing, scale=size.staggered / timing.duration_s)
    times = zip(scaled.starts_s(), scaled.ends_s(), strict=True)
    return tuple(Flow(cc, start, end - start) for start, end in times)


def _scene(
    name: str,
    kind: Kind,
    flows: tuple[Flow, ...],
    *,
    rate: int = 10,
    bdp: int = 1,
    forward: Mapping[str, str] = MappingProxyType({}),
) -> Scene:
    own = (flow.cc == "dctcp" for flow in flows)
    # DCTCP is Reno where nothing marks.
    queue = f'{{ kind = "ecn-step", limit = "{bdp}bdp" }}' if any(own) else f'"{bdp}bdp"'
    end_s = max(flow.end_s for flow in flows)
    parts = [
        f'name = "{name}"\n[topology]\nrate = "{rate}mbit"\nrtt = "{RTT_MS}ms"\nqueue = {queue}\n',
        "[topology.forward]\n",
        *(f'{key} = "{value}"\n' for key, value in forward.items()),
        *(_flow(kind, number, flow, len(flows)) for number, flow in enumerate(flows)),
        f'[measure]\nduration = "{_ms(end_s) + SAMPLES_MS}ms"\n',
        f'sample_interval = "{SAMPLES_MS}ms"\n',
    ]
    return Scene(name, kind, flows, Source("".join(parts), f"validate {name}"))


def _flow(kind: Kind, number: int, flow: Flow, count: int) -> str:
    asks = kind == "requests" and number > 0
    workload = '{ kind = "request", request = "10kib", response = "1b" }'
    lines = [
        "[[flow]]",
        f'name = "{REQUESTS if asks else f"flow{number}"}"',
        f'stack = "{flow.cc}"',
        f'start = "{_ms(flow.start_s)}ms"',
        f'stop = "{_ms(flow.end_s)}ms"',
        *([f'start_jitter = "{_ms(RANDOM_WAIT_S)}ms"'] if count > 1 else []),
        *([f"workload = {workload}"] if asks else []),
    ]
    return "\n".join(lines) + "\n"


def _ms(seconds: float) -> int:
    return round(seconds * 1e3)
