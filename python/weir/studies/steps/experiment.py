"""The runs of the study: every control over every link."""

from __future__ import annotations

from weir.studies.contest import FOUR, SEVEN, Extent, flow, topology
from weir.studies.steps.links import LINKS, Link

SAMPLE_S = 0.1

_MEASURE = """
[measure]
duration = "{seconds:g}s"
sample_interval = "{sample:g}s"
repeat = {repeat}
seed = {seed}
"""

_WAIT = "100ms"
FLOW = "flow"

EXTENTS = {
    "small": Extent(FOUR, 0, 3),
    "full": Extent(SEVEN, 0, 10),
}
"""Each link says how long it takes."""


def label(link: Link, stack: str) -> str:
    """The name of a case."""
    return f"{link.name}, {stack}"


def scenario(link: Link, stack: str, repeat: int, seed: int) -> str:
    """One control over one link."""
    head = topology("steps", link.rate, link.rtt, f'"{link.queue}"')
    forward = f"\n[topology.forward]\n{link.rate_steps()}\n{link.forward}\n"
    measure = _MEASURE.format(seconds=link.seconds, sample=SAMPLE_S, repeat=repeat, seed=seed)
    return head + forward + flow(FLOW, stack, _WAIT, link.rtt) + measure


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of the study by its label."""
    return {
        label(link, stack): scenario(link, stack, extent.repeat, extent.seed)
        for link in LINKS
        for stack in extent.stacks
    }
