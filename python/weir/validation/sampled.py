"""Random paths, kind by kind, for comparing the simulator with a guest's kernel.

Path `i` of a seed depends on nothing but the two, so that a longer list begins with a shorter one.
Kinds and congestion controls follow each other in turn: the numbers of both have no common divisor,
so that each kind gets each control.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from weir.kernel.recipe import CONTROLS
from weir.recordings.judge import Kind
from weir.recordings.truth import Flow
from weir.scenario.source import Source
from weir.validation.cases import SAMPLES_MS, Scene
from weir.validation.kinds import KINDS, PACKET, Path, PathKind, log_uniform

MOST_BDP = 2_000_000
"""In bytes: the largest windows of Linux, 16 MiB, hold a queue and a slow start beyond it."""

PACKETS = 8_000
"""A run lasts for as many, but for 20 round trips and 2 s at least, and for 20 s at most."""

_LEAST_S, _MOST_S, _LEAST_TRIPS = 2.0, 20.0, 20

DRAWN = ("cdg",)
"""Controllers that do not draw the simulation's numbers, although the guest has its generator.

CDG draws after each gradient above zero, and whether one of a microsecond is depends on rounding.
"""

RUNS = 3
"""Runs of the kernel where anything is random."""

SIMULATIONS = 20
"""Simulations of each path where anything is random."""

_APART_MS = 200
"""Flows start up to this long after each other."""


def scenes(count: int, seed: int) -> Iterator[Scene]:
    """The first `count` paths of a seed."""
    for number in range(count):
        yield _scene(number, random.Random(f"{seed}/{number}"))  # noqa: S311


def _scene(number: int, rng: random.Random) -> Scene:
    name, kind = [*KINDS.items()][number % len(KINDS)]
    path = _path(rng, kind)
    # A longer path of the same seed begins as the shorter: flow by flow one control further on.
    controls = [CONTROLS[(number + 5 * flow) % len(CONTROLS)] for flow in range(kind.flows)]
    path = kind.draw(rng, path)
    size = f"{path.rate_kbit / 1e3:g}m-{path.rtt_ms}ms-{path.packets}p"
    parts = [f"{number:03}", name, *controls, size, path.word]
    full = "-".join(filter(None, parts)).replace("%", "")
    flows = tuple(Flow(cc, 0.0, path.seconds) for cc in controls)
    is_random = kind.is_random or any(cc in DRAWN for cc in controls)
    source = Source(_text(full, path, flows), f"validate {full}", path.keys)
    return Scene(
        full,
        _judged(kind, controls),
        flows,
        source,
        rtt_ms=path.rtt_ms,
        simulations=SIMULATIONS if is_random else 0,
        group=name,
    )


def _judged(kind: PathKind, controls: Sequence[str]) -> Kind:
    if kind.flows > 1:
        return "mix" if len({*controls}) > 1 else "shared"
    if any(cc in DRAWN for cc in controls):
        return "drawn"
    return "loss" if kind.is_random else "deterministic"


def _path(rng: random.Random, kind: PathKind) -> Path:
    rate_kbit = 10 * round(100 * log_uniform(rng, kind.rate_mbit))
    rtt_ms = round(log_uniform(rng, kind.rtt_ms))
    queue = log_uniform(rng, kind.queue_bdp)
    rate_kbit = min(rate_kbit, 8 * MOST_BDP // rtt_ms)
    sent_s = PACKETS * PACKET * 8 / (rate_kbit * 1e3)
    least_s = max(_LEAST_S, _LEAST_TRIPS * rtt_ms / 1e3)
    return Path(rate_kbit, rtt_ms, queue, round(min(_MOST_S, max(least_s, sent_s)), 2))


def _text(name: str, path: Path, flows: Sequence[Flow]) -> str:
    # DCTCP is Reno where nothing marks.
    marks = f'{{ kind = "ecn-step", limit = "{path.packets}p" }}'
    queue = marks if any(flow.cc == "dctcp" for flow in flows) else f'"{path.packets}p"'
    end_ms = round(path.seconds * 1e3)
    parts = [
        f'name = "{name}"\n[topology]\nrate = "{path.rate_kbit}kbit"\nrtt = "{path.rtt_ms}ms"\n',
        f"queue = {queue}\n",
        *(_flow(number, flow, end_ms, len(flows)) for number, flow in enumerate(flows)),
        f'[measure]\nduration = "{end_ms + SAMPLES_MS}ms"\nsample_interval = "{SAMPLES_MS}ms"\n',
    ]
    return "".join(parts)


def _flow(number: int, flow: Flow, end_ms: int, count: int) -> str:
    lines = [
        "[[flow]]",
        f'name = "flow{number}"',
        f'stack = "{flow.cc}"',
        'start = "0ms"',
        f'stop = "{end_ms}ms"',
        *([f'start_jitter = "{_APART_MS}ms"'] if count > 1 else []),
    ]
    return "\n".join(lines) + "\n"
