"""The contests of the study: a short and a long way, at every ratio, over two queues."""

from __future__ import annotations

from weir.studies.contest import FOUR, SEVEN, Extent, flow, measure, topology

RATE = "20mbit"
SHORT_MS = 20
"""The round trip of the short way, without queues."""

RATIOS = (1, 2, 4, 8)
"""Base round trip of the long way over that of the short one."""

QUEUES = {
    "drop-tail": f'"{4 * SHORT_MS}ms"',
    "fq-codel": '{ kind = "fq-codel", limit = "1000p" }',
}
"""The queues, as a scenario writes them. The drop-tail one holds half the longest round trip."""

_WAIT = "1s"

EXTENTS = {
    "small": Extent(FOUR, 32, 3),
    "full": Extent(SEVEN, 120, 10),
}

SHORT, LONG = "short", "long"


def label(queue: str, stack: str, ratio: int) -> str:
    """The name of a case."""
    return f"{queue}, {stack}, {ratio} to 1"


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of the study by its label."""
    found = {}
    for queue, text in QUEUES.items():
        head = topology("rtt-fairness", RATE, f"{SHORT_MS}ms", text)
        for stack in extent.stacks:
            for ratio in RATIOS:
                short = flow(SHORT, stack, _WAIT, f"{SHORT_MS}ms")
                long = flow(LONG, stack, _WAIT, f"{ratio * SHORT_MS}ms")
                found[label(queue, stack, ratio)] = head + short + long + measure(extent)
    return found
