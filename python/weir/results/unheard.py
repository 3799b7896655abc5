"""What the network would have to tell controllers that go by it, and did not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from weir._native import router_feedback, stack_parts
from weir.scenario.source import SIM

if TYPE_CHECKING:
    from weir.results.results import Results

_MARKED = ("dcqcn", "dctcp", "prague")
"""Controllers that differ from others by what they do with marks."""


def unheard(results: Results) -> list[str]:
    """A sentence per controller that the network of a case did not tell what it goes by."""
    return list(dict.fromkeys(text for case in results.cases for text in _of_case(results, case)))


def _of_case(results: Results, case: Mapping[str, Any]) -> Iterator[str]:
    if case.get("world", SIM) != SIM:
        return
    topology = case["scenario"].get("topology", {})
    stacks = {str(flow.get("stack", "")) for flow in case["scenario"].get("flow", ())}
    for stack in sorted(stacks):
        algorithm = stack_parts(stack)[3]
        kind = router_feedback(stack)
        if kind is not None and kind not in _kinds(topology):
            yield (
                f"{algorithm} goes by what routers tell, and none on the path does: "
                f'set feedback = {{ kind = "{kind}" }} there.'
            )
        if algorithm in _MARKED and not _marks(results, case["label"]):
            yield f"No packet was marked: what {algorithm} does with marks is not seen."


def _kinds(section: Any) -> Iterator[str]:
    """The kinds of feedback in a section of a scenario, and below it."""
    if isinstance(section, Mapping):
        feedback = section.get("feedback")
        if isinstance(feedback, Mapping):
            yield str(feedback["kind"])
        for value in section.values():
            yield from _kinds(value)
    elif isinstance(section, list):
        for value in section:
            yield from _kinds(value)


def _marks(results: Results, label: str) -> bool:
    """Whether a link marked a packet in a run of a case."""
    if "marked" not in results.links.columns:
        return True  # not known
    runs = results.runs.filter(pl.col("label") == label).select("run")
    return bool(results.links.join(runs, on="run").filter(pl.col("marked") > 0).height)
