"""The runs of the study: every scheme over every path, alone and as three flows of one kind."""

from __future__ import annotations

from weir.studies.contest import Extent
from weir.studies.pantheon.paths import PATHS, SECONDS, Path
from weir.studies.schemes import END_TO_END, KINDS, present

FLOWS = (1, 3)
INTERVAL_S = 10
"""Time between the starts of two flows; all end together."""

_FLOW = """
[[flow]]
name = "flow {number}"
stack = "{stack}"
from = "sender"
to = "receiver"
start = "{start}s"
start_jitter = "100ms"
"""

_MEASURE = """
[measure]
duration = "{seconds}s"
sample_interval = "0s"
repeat = {repeat}
seed = {seed}
"""

EXTENTS = {
    "small": Extent(present(KINDS), SECONDS, 2),
    "full": Extent(present(END_TO_END), SECONDS, 10),
}
"""Both sizes take every path, for its full 30 s."""


def label(path: Path, flows: int, stack: str) -> str:
    """The name of a case."""
    return f"path {path.number}, {flows_name(flows)}, {stack}"


def flows_name(flows: int) -> str:
    """As headings name it."""
    return "1 flow" if flows == 1 else f"{flows} flows"


def scenario(path: Path, flows: int, stack: str, repeat: int, seed: int) -> str:
    """One scheme over one path."""
    sources = "".join(
        _FLOW.format(number=number + 1, stack=stack, start=number * INTERVAL_S)
        for number in range(flows)
    )
    measure = _MEASURE.format(seconds=SECONDS, repeat=repeat, seed=seed)
    return f'name = "pantheon"\n{path.topology()}{sources}{measure}'


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of the study by its label."""
    return {
        label(path, flows, stack): scenario(path, flows, stack, extent.repeat, extent.seed)
        for path in PATHS
        for flows in FLOWS
        for stack in extent.stacks
    }
