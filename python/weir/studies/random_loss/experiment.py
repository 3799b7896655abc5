"""The runs of the study: one flow, one control, one loss rate."""

from __future__ import annotations

from weir.studies.contest import FOUR, SEVEN, Extent, flow, measure, topology

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


EXTENTS = {
    "small": Extent(FOUR, 24, 3, values=(0.01, 0.1, 1, 5, 15)),
    "full": Extent(
        SEVEN, 60, 10, values=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 2, 3, 5, 10, 15, 20, 30, 50)
    ),
}
"""The values are loss rates in percent."""

FLOW = "flow"


def label(stack: str, percent: float) -> str:
    """The name of a case."""
    return f"{stack}, loss {percent:g} %"


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of the study by its label."""
    head, tail = topology("random-loss", RATE, RTT, '"1bdp"'), measure(extent)
    return {
        label(stack, percent): (
            head + _IMPAIR.format(percent=percent) + flow(FLOW, stack, _WAIT, RTT) + tail
        )
        for stack in extent.stacks
        for percent in extent.values
    }
