"""The runs of the study: one flow, one control, one loss rate."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from weir.scenario import Source
from weir.studies.contest import FOUR, SEVEN, Extent, flow, measure, topology
from weir.sweep import Plan, plan

RATE = "100mbit"
RATE_MBPS = 100.0
RTT = "100ms"
RTT_S = 0.1
MSS = 1448
PACKET = 1500

_IMPAIR = """
[topology.forward]
loss = "{percent:g}%"
"""

_WAIT = "100ms"


@dataclass(frozen=True, slots=True)
class LossExtent:
    """How much of the study is carried out."""

    contests: Extent
    percents: Sequence[float]

    def chosen(self, repeat: int | None, seed: int) -> LossExtent:
        """The same with what a caller chose."""
        own = replace(self.contests, seed=seed)
        return replace(self, contests=own if repeat is None else replace(own, repeat=repeat))


EXTENTS = {
    "small": LossExtent(Extent(FOUR, 24, 3, 1), (0.01, 0.1, 1, 5, 15)),
    "full": LossExtent(
        Extent(SEVEN, 60, 10, 1),
        (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 2, 3, 5, 10, 15, 20, 30, 50),
    ),
}

FLOW = "flow"


def label(stack: str, percent: float) -> str:
    """The name of a case."""
    return f"{stack}, loss {percent:g} %"


def study_plan(extent: LossExtent, size: str) -> Plan:
    """Every run of the study."""
    head = topology("random-loss", RATE, RTT, '"1bdp"')
    own = extent.contests
    sources = {
        label(stack, percent): Source(
            head + _IMPAIR.format(percent=percent) + flow(FLOW, stack, _WAIT, RTT) + measure(own),
            "study random-loss",
        )
        for stack in own.stacks
        for percent in extent.percents
    }
    words = ["weir", "study", "random-loss", "--size", size, "--repeat", str(own.repeat)]
    return plan("random-loss", shlex.join([*words, "--seed", str(own.seed)]), sources, {})
