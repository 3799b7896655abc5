"""The contests of the study: every pair, and every control alone, over every buffer."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Sequence

from weir.scenario import Source
from weir.studies.contest import FOUR, SEVEN, Extent, flow, measure, topology
from weir.sweep import Plan, plan

RATE = "50mbit"
RTT = "30ms"

BUFFERS = (0.5, 1.0, 4.0)
"""In bandwidth-delay products."""

_WAIT = "2s"
"""Each flow starts within this time, so that either may come first; nsperf has them 2 s apart."""

EXTENTS = {
    "small": Extent(FOUR, 24, 3, 1),
    "full": Extent(SEVEN, 120, 10, 1),
}

FIRST, SECOND = "first", "second"


def pair_label(buffer: float, one: str, other: str) -> str:
    """The name of the case in which `one` is the first flow and `other` the second."""
    return f"{buffer_name(buffer)}, {one} and {other}"


def solo_label(buffer: float, stack: str) -> str:
    """The name of the case in which a control is alone."""
    return f"{buffer_name(buffer)}, {stack} alone"


def buffer_name(buffer: float) -> str:
    """As headings name it."""
    return f"{buffer:g} BDP"


def pairs(stacks: Sequence[str]) -> list[tuple[str, str]]:
    """Every pair once, each control with itself included."""
    return list(itertools.combinations_with_replacement(stacks, 2))


def study_plan(extent: Extent, size: str) -> Plan:
    """Every run of the study."""
    cases: dict[str, str] = {}
    for buffer in BUFFERS:
        for one, other in pairs(extent.stacks):
            flows = flow(FIRST, one, _WAIT, RTT) + flow(SECOND, other, _WAIT, RTT)
            cases[pair_label(buffer, one, other)] = flows
        for stack in extent.stacks:
            cases[solo_label(buffer, stack)] = flow(FIRST, stack, _WAIT, RTT)
    sources = {
        label: Source(_head(label) + flows + measure(extent), "study coexist")
        for label, flows in cases.items()
    }
    words = ["weir", "study", "coexist", "--size", size, "--repeat", str(extent.repeat)]
    return plan("coexist", shlex.join([*words, "--seed", str(extent.seed)]), sources, {})


def _head(label: str) -> str:
    buffer = label.partition(" BDP")[0]
    return topology("coexist", RATE, RTT, f'"{buffer}bdp"')
