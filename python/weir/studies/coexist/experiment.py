"""The contests of the study: every pair, and every control alone, over every buffer."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from weir.studies.contest import FOUR, SEVEN, Extent, flow, measure, topology

RATE = "50mbit"
RTT = "30ms"

BUFFERS = (0.5, 1.0, 4.0)
"""In bandwidth-delay products."""

_WAIT = "2s"
"""Each flow starts within this time, so that either may come first; nsperf has them 2 s apart."""

EXTENTS = {
    "small": Extent(FOUR, 24, 3),
    "full": Extent(SEVEN, 120, 10),
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


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of the study by its label."""
    found: dict[str, str] = {}
    for buffer in BUFFERS:
        head, tail = topology("coexist", RATE, RTT, f'"{buffer:g}bdp"'), measure(extent)
        for one, other in pairs(extent.stacks):
            flows = flow(FIRST, one, _WAIT, RTT) + flow(SECOND, other, _WAIT, RTT)
            found[pair_label(buffer, one, other)] = head + flows + tail
        for stack in extent.stacks:
            found[solo_label(buffer, stack)] = head + flow(FIRST, stack, _WAIT, RTT) + tail
    return found
