"""Random paths with one flow each, for comparing the simulator with a guest's kernel.

Scenario `i` of a seed depends on nothing but the two, so that a longer list begins with a shorter
one. The ranges are those of the access links at which the stacks were not tuned against recordings.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from weir.kernel.recipe import CONTROLS
from weir.recordings.judge import Kind
from weir.recordings.truth import Flow
from weir.scenario.source import Source
from weir.validation.cases import SAMPLES_MS, Scene

RATE_MBIT, RTT_MS, QUEUE_BDP = (2.0, 50.0), (10.0, 150.0), (0.3, 3.0)
LOSS = (0.000_1, 0.02)
"""Ranges of the path; logarithms are uniform."""

_LOSSY = 0.5
"""Share of the scenarios with random loss."""

DURATION_S = 12
"""BBR measures the round-trip time again after 10 s."""

_LEAST_PACKETS = 2
_PACKET = 1_500


DRAWN = ("cdg",)
"""Controllers that do not draw the simulation's numbers, although the guest has its generator.

CDG draws after each gradient above zero, and whether one of a microsecond is depends on rounding.
"""

SIMULATIONS = 40
"""Of a flow of these."""


def scenes(count: int, seed: int, simulations: int = SIMULATIONS) -> Iterator[Scene]:
    """The first `count` scenarios of a seed."""
    for number in range(count):
        yield _scene(number, random.Random(f"{seed}/{number}"), simulations)  # noqa: S311


def _scene(number: int, rng: random.Random, simulations: int) -> Scene:
    # All that the guest's kernel has, in turn.
    cc = CONTROLS[number % len(CONTROLS)]
    rate_kbit, rtt_ms = 100 * round(10 * _log(rng, RATE_MBIT)), round(_log(rng, RTT_MS))
    bdp = rate_kbit * rtt_ms // 8
    packets = max(_LEAST_PACKETS, round(bdp * _log(rng, QUEUE_BDP) / _PACKET))
    # Drawn in any case, so that the choice does not move what follows.
    loss = _log(rng, LOSS)
    is_lossy = rng.random() < _LOSSY
    percent = f"{100 * loss:.2g}" if is_lossy else "0"
    name = f"{number:03}-{cc}-{rate_kbit / 1e3:g}m-{rtt_ms}ms-{packets}p"
    name += f"-loss{percent}" if is_lossy else ""
    draws = cc in DRAWN
    kind: Kind = "drawn" if draws else "loss" if is_lossy else "deterministic"
    # DCTCP is Reno where nothing marks.
    marks = f'{{ kind = "ecn-step", limit = "{packets}p" }}'
    text = f"""\
name = "{name}"
[topology]
rate = "{rate_kbit}kbit"
rtt = "{rtt_ms}ms"
queue = {marks if cc == "dctcp" else f'"{packets}p"'}
[topology.forward]
loss = "{percent}%"
[[flow]]
name = "flow0"
stack = "{cc}"
start = "0ms"
stop = "{DURATION_S}s"
[measure]
duration = "{DURATION_S * 1_000 + SAMPLES_MS}ms"
sample_interval = "{SAMPLES_MS}ms"
"""
    flows = (Flow(cc, 0.0, DURATION_S),)
    return Scene(
        name,
        kind,
        flows,
        Source(text, f"validate {name}"),
        rtt_ms=rtt_ms,
        simulations=simulations if draws else 0,
    )


def _log(rng: random.Random, between: tuple[float, float]) -> float:
    low, high = map(math.log, between)
    return math.exp(low + (high - low) * rng.random())
