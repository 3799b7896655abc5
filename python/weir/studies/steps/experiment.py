"""The runs of the study: every control over every link."""

from __future__ import annotations

import shlex

from weir.scenario import Source
from weir.studies.contest import FOUR, SEVEN, Extent, flow, topology
from weir.studies.steps.links import LINKS, Link
from weir.sweep import Plan, plan

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
    "small": Extent(FOUR, 0, 3, 1),
    "full": Extent(SEVEN, 0, 10, 1),
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


def study_plan(extent: Extent, size: str) -> Plan:
    """Every run of the study."""
    sources = {
        label(link, stack): Source(scenario(link, stack, extent.repeat, extent.seed), "study steps")
        for link in LINKS
        for stack in extent.stacks
    }
    words = ["weir", "study", "steps", "--size", size, "--repeat", str(extent.repeat)]
    return plan("steps", shlex.join([*words, "--seed", str(extent.seed)]), sources, {})
