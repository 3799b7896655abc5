"""The scenario file of a model."""

from __future__ import annotations

from collections.abc import Iterator

from weir.modelling.measured import Measurement
from weir.modelling.simulate import measured_keys
from weir.plain import plain


def scenario_text(measured: Measurement) -> str:
    """The model as a scenario file, whose comments have the intervals."""
    return "\n".join(_lines(measured)) + "\n"


def _lines(measured: Measurement) -> Iterator[str]:
    path, flow = measured.path, measured.flow
    yield f"# Model of {plain(measured.source)}, by weir model. Estimates with 95 % intervals:"
    for _, title, value, unit in path.named():
        yield f"# {title}: {value} {unit}"
    if path.steps:
        yield f"# The rate changes: {len(path.steps)} steps."
    keys = measured_keys(path, flow) if flow else {**path.keys(), "flow.0.stack": "cubic"}
    if flow and flow.is_assumed:
        yield f"# The controller of the measured flow is not known: {flow.stack} is assumed."
    sections = {"topology": "[topology]", "forward": "[topology.forward]"}
    sections |= {"flow": "[[flow]]", "measure": "[measure]"}
    for name, heading in sections.items():
        own = {key: value for key, value in keys.items() if _section(key) == name}
        if own:
            yield from ("", heading)
            yield from (f"{key.rpartition('.')[2]} = {_toml(value)}" for key, value in own.items())


def _section(key: str) -> str:
    return "forward" if ".forward." in key else key.partition(".")[0]


def _toml(value: str) -> str:
    is_plain = value.isdigit() or value.startswith(("{", "["))
    return value if is_plain else f'"{value}"'
