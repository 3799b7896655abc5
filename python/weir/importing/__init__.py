"""Results of other programs as result directories: Flent, iperf3, logs of `ss -ti`.

A file is one run. Its flows keep what the program measured; what it did not measure is empty.
"""

from __future__ import annotations

import gzip
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from weir.base.errors import InputError
from weir.importing import flent, iperf3, ss
from weir.importing.runs import ImportedRun, tables
from weir.results.results import Results, load
from weir.running.execution import run_plan
from weir.scenario.source import REAL_PATH, Effective
from weir.scenario.sweep import Case, Plan

NAME = "imported"
MANIFEST = "manifest.json"
_SUFFIXES = (".flent.gz", ".flent", ".json", ".log", ".txt")
_LONGEST = 256 << 20
"""Bytes of a file, unpacked."""


def loaded(path: Path, root: Path, label: str | None = None) -> Results:
    """The results in a directory of Weir, or in files of other programs.

    A file, or a folder of files that repeat each other, becomes a new directory
    `root/imported/<UTC time>`. Its case is called `label`, or after the congestion control.

    Raises:
        InputError: it is neither.
        StoreError: the directory cannot be written.
    """
    files = files_of(path)
    return written([read(file) for file in files], path, root, label) if files else load(path)


def files_of(path: Path) -> list[Path]:
    """The files of other programs that a path means; none if it is a directory of Weir."""
    if path.is_file():
        return [path]
    if not path.is_dir() or (path / MANIFEST).exists():
        return []
    return sorted(file for file in path.iterdir() if file.name.endswith(_SUFFIXES))


def read(file: Path) -> ImportedRun:
    """The run in a file of another program.

    Raises:
        InputError: the file is of none of them, or has no flow that can be compared.
    """
    text = _text(file)
    if text.lstrip().startswith("{"):
        document = _document(file, text)
        if flent.is_own(document):
            return flent.run(file, document)
        if iperf3.is_own(document):
            return iperf3.run(file, document)
    elif ss.is_own(text):
        return ss.run(file, text)
    raise InputError(
        f"{file}: no results that are read: give a result directory, a .flent.gz, what iperf3 -J "
        "printed, or a log of ss -ti"
    )


def written(
    runs: Sequence[ImportedRun], path: Path, root: Path, label: str | None = None
) -> Results:
    """Writes runs that repeat each other into a new result directory."""
    first = runs[0]
    stack = ", ".join(dict.fromkeys(run.stack for run in runs))
    measure = {"duration": f"{first.end_s:g}s", "warmup": "0s", "repeat": len(runs), "seed": 1}
    fields: dict[str, Any] = {
        "name": NAME,
        "description": f"{first.program}: {path.name}",
        "flow": [{"name": flow.name, "stack": flow.stack} for flow in first.flows],
        "measure": measure,
    }
    case = Case(label or stack, stack, {}, Effective(fields), REAL_PATH)
    plan = Plan(NAME, shlex.join(["weir", *sys.argv[1:]]), (case,), len(runs), 1)

    def run_one(_scenario: Effective, seed: int, *_: object) -> dict[str, pl.DataFrame]:
        return tables(runs[seed - 1])

    return run_plan(plan, run_one, out=root, jobs=1, show_progress=False)


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            is_packed = opened.read(2) == b"\x1f\x8b"
        reader = gzip.open if is_packed else open
        with reader(file, "rb") as opened:
            content: bytes = opened.read(_LONGEST + 1)
    except (OSError, EOFError) as error:
        raise InputError(f"{file}: {error}") from None
    if len(content) > _LONGEST:
        raise InputError(f"{file}: it is longer than {_LONGEST >> 20} MiB")
    return content.decode(errors="replace")


def _document(file: Path, text: str) -> dict[str, Any]:
    try:
        return dict(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: it is no valid JSON: {error}") from None
