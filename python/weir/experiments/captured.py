"""What studies share that capture one flow of each controller on each of their paths."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weir import reading
from weir.base.errors import InputError
from weir.cells.protocol import Settings
from weir.results.results import Results
from weir.running.execution import RunOptions, run_plan
from weir.scenario import capture
from weir.scenario.plans import world_words
from weir.scenario.source import LIBRARY, SIM, Source
from weir.scenario.sweep import Plan, plan

Keys = Mapping[str, str]
"""Keys of a scenario."""

_SCENARIO = """
name = "{name}"
[topology]
[topology.forward]
{flows}
[measure]
duration = "10s"
"""
_FLOW = '[[flow]]\nstack = "cubic"\n'


def path_keys(rate: str, rtt: str, queue: str, **forward: str) -> Keys:
    """The keys of a path; `forward` are impairments of the data's direction."""
    keys = {"topology.rate": rate, "topology.rtt": rtt, "topology.queue": queue}
    return {**keys, **{f"topology.forward.{key}": value for key, value in forward.items()}}


def label(path: str, stack: str) -> str:
    """The label of a case."""
    return f"{path}, {stack}"


def source(study: str, keys: Keys, stack: str, settings: Settings) -> Source:
    """One flow of `stack` on a path, next to the others of which there are keys."""
    own = {"flow.0.stack": stack, "measure.repeat": str(settings.repeat or 1)}
    every = {**keys, **own, "measure.seed": str(settings.seed)}
    file = str(LIBRARY / f"{study}.toml")
    flows = {key.split(".")[1] for key in every if key.startswith("flow.")}
    text = _SCENARIO.format(name=study, flows=len(flows) * _FLOW)
    return Source(text, f"study {study}", tuple(every.items()), file)


def plan_of(study: str, sources: Mapping[str, Source], settings: Settings) -> Plan:
    """The plan of a study's sources by their labels."""
    words = ["weir", "study", study, "--size", settings.size, "--seed", str(settings.seed)]
    words += [] if settings.world == SIM else world_words(settings.world)
    return plan(study, shlex.join(words), sources, {})


@contextmanager
def captured(own: Plan, settings: Settings) -> Iterator[tuple[Results, Mapping[int, Path]]]:
    """Runs a plan: its results, and the captures by the numbers of runs until the block ends."""
    with tempfile.TemporaryDirectory() as scratch:
        how = RunOptions(**{**settings.how, "pcap": scratch})
        yield run_plan(own, **how), capture.files(Path(scratch), own)


def existing(study: str, case: str, file: Path) -> Path:
    """The capture of a case.

    Raises:
        InputError: there is none, because its run was taken from earlier results.
    """
    if not file.is_file():
        raise InputError(f"study {study}: {case} has no capture; run it without --resume")
    return file


def row_at_sender(file: Path) -> dict[str, Any]:
    """The one connection of a capture, as seen at its sender.

    Raises:
        InputError: there is none.
    """
    for row in reading.read([file]).connections.iter_rows(named=True):
        if row["capture_point"] == "sender":
            return row
    raise InputError(f"{file}: no connection was captured at its sender")
