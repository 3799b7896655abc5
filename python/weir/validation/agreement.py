"""How often the simulator agreed with Linux on paths such as those of a result.

`agreement.json` has the share of rows that hold of each kind of random paths. It is written with
the table of the documentation, by `docs/.site/kinds.py`, and never by hand. A verb that runs a
scenario in the simulator names the kinds of it that are below the goal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from weir import _native
from weir.kernel.recipe import CONTROLS
from weir.results.results import Results
from weir.scenario.source import SIM
from weir.validation.kinds import GOAL, KINDS, PACKET

FILE = Path(__file__).with_name("agreement.json")

Scenario = Mapping[str, Any]
Agreement = Mapping[str, Mapping[str, int]]

_FIXED_BUFFER = "64mib"
"""The default of `recv_buffer`."""


@cache
def measured() -> Agreement:
    """What was measured last: rows, and rows that hold, by kind."""
    found: Agreement = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def joined(known: Agreement, spreads: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """What was known, with these kinds as they are now, in the order of `KINDS`."""
    found = {kind: dict(rows) for kind, rows in known.items()}
    for each in spreads:
        found[each["kind"]] = {"rows": each["rows"], "held": each["held"]}
    return {kind: found[kind] for kind in KINDS if kind in found}


def cautions(results: Results, agreement: Agreement | None = None) -> list[str]:
    """A sentence per kind that is below the goal and that cases of the simulator are of."""
    known = measured() if agreement is None else agreement
    low = {kind: rows for kind, rows in known.items() if rows["held"] < GOAL * rows["rows"]}
    if not low or any(case.get("world", SIM) != SIM for case in results.cases):
        return []
    found = {kind for case in results.cases for kind in kinds_of(case["scenario"])}
    return [
        f"On random paths of kind {kind}, {rows['held']} of {rows['rows']} values are Linux's "
        "(docs/validation): a small difference here may not be one of Linux's TCP."
        for kind, rows in low.items()
        if kind in found
    ]


def kinds_of(scenario: Scenario) -> Iterator[str]:
    """The kinds of random paths that a scenario is of; none where other than Linux's TCP runs."""
    flows, topology = scenario.get("flow", ()), scenario.get("topology", {})
    stacks = {str(flow.get("stack", "")).removeprefix("rack/") for flow in flows}
    if topology.get("kind") != "dumbbell" or not stacks or not stacks <= set(CONTROLS):
        return
    special = [kind for kind, applies in _SPECIAL.items() if applies(topology, flows)]
    yield from special
    sized = [kind for kind, applies in _SIZED.items() if applies(topology)]
    yield from sized or ([] if special else ["plain"])


def _is_set(section: Mapping[str, Any], key: str) -> bool:
    value = section.get(key)
    return bool(value) and str(value).strip("0.") not in ("%", "s")


def _queue(topology: Scenario) -> Mapping[str, Any]:
    queue = topology.get("queue")
    return queue if isinstance(queue, Mapping) else {}


def _stops(topology: Scenario) -> bool:
    steps = topology["forward"].get("rate_steps") or ()
    return any(_native.parse_quantity("rate", step["rate"]) == 0 for step in steps)


def _works(kind: str) -> Callable[[Scenario, Sequence[Scenario]], bool]:
    return lambda _, flows: any(flow.get("workload", {}).get("kind") == kind for flow in flows)


def _count(flows: Sequence[Scenario]) -> int:
    return sum(flow.get("count", 1) for flow in flows)


def _has_small_window(flow: Scenario) -> bool:
    return flow.get("recv_buffer") != _FIXED_BUFFER and flow.get("max_recv_buffer") is None


_SPECIAL: Mapping[str, Callable[[Scenario, Sequence[Scenario]], bool]] = {
    "loss": lambda path, _: _is_set(path["forward"], "loss"),
    "codel": lambda path, _: _queue(path).get("kind") == "codel" and not _queue(path).get("ecn"),
    "red": lambda path, _: _queue(path).get("kind") == "red" and not _queue(path).get("ecn"),
    "ecn": lambda path, _: bool(_queue(path).get("ecn")),
    "reordering": lambda path, _: _is_set(path["forward"], "reorder"),
    "jitter": lambda path, _: _is_set(path["forward"], "jitter"),
    "duplicates": lambda path, _: _is_set(path["forward"], "duplicate"),
    "bursts": lambda path, _: bool(path["forward"].get("burst_loss")),
    "ack-loss": lambda path, _: _is_set(path["reverse"], "loss"),
    "slow-reverse": lambda path, _: bool(path["reverse"].get("rate")),
    "steps": lambda path, _: bool(path["forward"].get("rate_steps")) and not _stops(path),
    "blackout": lambda path, _: _stops(path),
    "bucket": lambda path, _: bool(path.get("burst")),
    "file": _works("file"),
    "requests": _works("request"),
    "paced": _works("rate"),
    "window": lambda _, flows: any(_has_small_window(flow) for flow in flows),
    "two": lambda _, flows: _count(flows) == 2,
    "three": lambda _, flows: _count(flows) == 3,
}


def _rate_mbit(topology: Scenario) -> float:
    return _native.parse_quantity("rate", topology["rate"]) / 1e6


def _rtt_ms(topology: Scenario) -> float:
    return _native.parse_quantity("time", topology["rtt"]) * 1e3


def _queue_bdp(topology: Scenario) -> float | None:
    """The queue in bandwidth-delay products, if it is given in these or in packets."""
    text = str(topology.get("queue"))
    bdp_bytes = _rate_mbit(topology) * _rtt_ms(topology) * 1e3 / 8
    if text.endswith("bdp"):
        return float(text.removesuffix("bdp"))
    if text.endswith("p") and bdp_bytes:
        return float(text.removesuffix("p")) * PACKET / bdp_bytes
    return None


def _is_queue_within(topology: Scenario, low: float, high: float) -> bool:
    size = _queue_bdp(topology)
    return size is not None and low <= size < high


_SIZED: Mapping[str, Callable[[Scenario], bool]] = {
    "slow": lambda path: _rate_mbit(path) < 2,
    "fast": lambda path: _rate_mbit(path) > 50,
    "long": lambda path: _rtt_ms(path) > 250,
    "shallow": lambda path: _is_queue_within(path, 0, 0.3),
    "deep": lambda path: _is_queue_within(path, 3, 1e9),
}
