"""The scenario file of a model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from weir.base.plain import plain
from weir.modelling.measured import Measurement
from weir.modelling.simulate import Check, measured_keys


def scenario_text(measured: Measurement, check: Check | None = None) -> str:
    """The model as a scenario file, whose comments have the intervals.

    What has only a lower bound is swept from there to the most that the capture allows.
    """
    return "\n".join(_lines(measured, check)) + "\n"


def _lines(measured: Measurement, check: Check | None) -> Iterator[str]:
    path, flow = measured.path, measured.flow
    if check and (refusal := check.refusal):
        yield f"# Warning: {refusal}"
    yield f"# Model of {plain(measured.source)}, by weir model. Estimates with 95 % intervals:"
    for _, title, value, unit in path.named():
        yield f"# {title}: {value} {unit}"
    if path.over_time:
        yield f"# The rate changes: {path.over_time}."
    keys = measured_keys(path, flow) if flow else {**path.keys(), "flow.0.stack": "cubic"}
    if flow and flow.is_assumed:
        yield f"# The controller of the measured flow is not known: {flow.stack} is assumed."
    if path.cross_mbps:
        keys["measure.duration"] = f"{len(path.cross_mbps)}s"
    for home, heading in _HEADINGS.items():
        yield from _section(heading, {k: v for k, v in keys.items() if _home(k) == home})
        if home == "flow.0":
            for cross in path.cross_flows():
                yield from _section(heading, cross)
    if ranges := path.ranges():
        yield from ("", "# Of these only the first value was seen; the path may have more.")
        yield "[sweep]"
        yield from (f'"{key}" = {json.dumps(values)}' for key, values in ranges.items())


def _section(heading: str, keys: Mapping[str, str]) -> Iterator[str]:
    if keys:
        yield from ("", heading)
        yield from (f"{key.rpartition('.')[2]} = {_toml(value)}" for key, value in keys.items())


def _home(key: str) -> str:
    return key.rpartition(".")[0]


def _toml(value: str) -> str:
    is_plain = value.isdigit() or value.startswith(("{", "["))
    return value if is_plain else json.dumps(value, ensure_ascii=False)


_HEADINGS = {
    "topology": "[topology]",
    "topology.forward": "[topology.forward]",
    "topology.reverse": "[topology.reverse]",
    "flow.0": "[[flow]]",
    "measure": "[measure]",
}
"""Sections of a scenario file, in their order."""
