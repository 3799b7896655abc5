"""Where the packet captures of a plan go: one file per run."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryFile

from weir import _native
from weir.base.errors import InputError, StoreError
from weir.scenario.source import KERNEL, SIM, VIRTUAL
from weir.scenario.sweep import Plan

SUFFIX = ".pcapng"

_PROBE_BYTES = 1 << 16


def files(folder: Path, plan: Plan) -> dict[int, Path]:
    """The file of each run, by the run's index: `LABEL-REPEAT.pcapng`. The folder is made.

    Raises:
        InputError: a world has no packets to record.
        StoreError: nothing can be written there.
    """
    for case in plan.cases:
        if case.world not in (SIM, KERNEL, VIRTUAL):
            raise InputError(f"--pcap: world {case.world} records no packets; sim and kernel do")
        if case.world == SIM:
            try:
                case.scenario.checked.check_capture()
            except _native.ScenarioError as error:
                raise InputError(f"--pcap: {case.label}: {error}") from None
    prepare(folder)
    named = names([case.label for case in plan.cases])
    return {
        run.index: folder.absolute() / f"{named[run.case.label]}-{run.repeat}{SUFFIX}"
        for run in plan.runs
    }


def prepare(folder: Path) -> None:
    """Makes the folder, and tries whether files can be written there.

    Raises:
        InputError: it is something else.
        StoreError: they cannot.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--pcap: {folder} is no folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(_PROBE_BYTES))
    except OSError as error:
        raise StoreError(f"--pcap: cannot write in {folder}: {error.strerror}") from None


def names(labels: list[str]) -> dict[str, str]:
    """A file name for each label, unique also after replacing `/` and similar characters."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for number, label in enumerate(labels):
        name = re.sub(r"[^A-Za-z0-9._=-]+", "-", label).strip("-.") or "run"
        found[label] = f"{name}-{number}" if name in taken else name
        taken.add(found[label])
    return found
