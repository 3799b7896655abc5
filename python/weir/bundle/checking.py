"""Repeats the runs of a bundle, and compares the hash over all deliveries of each."""

from __future__ import annotations

import os
import re
import tempfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from weir.base.errors import InputError, RunError
from weir.bundle.writing import RESULTS
from weir.results.results import Results, load
from weir.running.runner import execute
from weir.scenario.source import SIM, Effective

Verdict = Literal["same", "differs", "not repeated"]

_NAME = re.compile(rf"{RESULTS}([\w][\w.-]*\.(json|parquet))")
_MOST_FILES = 1_000
_MOST_BYTES = 8 << 30
"""Of all files unpacked: a bundle of an attacker fills no disk."""
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Repeated:
    """A run of the bundle, and how its repetition compares."""

    label: str
    repeat: int
    seed: int
    verdict: Verdict
    reason: str = ""


def check(path: Path) -> list[Repeated]:
    """Repeats every run of a bundle: a zip file, or the folder that it was unpacked into.

    Raises:
        InputError: it is no bundle, is damaged, or is larger than allowed.
        RunError: a run fails now.
    """
    with _unpacked(path) as folder:
        results = load(folder)
        results.verify()
        rows = results.runs.filter(status="ok").sort("run").to_dicts()
        if not rows:
            raise InputError(f"{path}: no run of these results succeeded")
        cases = {case["label"]: case for case in results.cases}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda row: _repeated(row, cases[row["label"]], results), rows))


def _repeated(row: dict[str, Any], case: dict[str, Any], results: Results) -> Repeated:
    which = (row["label"], row["repeat"], row["seed"])
    world = case.get("world", SIM)
    if world != SIM:
        reason = f"world {world}: no two of its runs are the same"
        return Repeated(*which, "not repeated", reason)
    scenario = Effective(case["scenario"])
    if scenario.controllers:
        reason = "its controller is a program of others; weir run repeats it"
        return Repeated(*which, "not repeated", reason)
    try:
        found = execute(scenario, row["seed"])["summary"]["trace_hash"][0]
    except RuntimeError as error:
        raise RunError(f"{row['label']}, repeat {row['repeat']}: {error}") from None
    if found == row["trace_hash"]:
        return Repeated(*which, "same")
    made = results.manifest["version"]
    return Repeated(*which, "differs", f"hash {row['trace_hash']} of Weir {made}, now {found}")


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """The result directory in a bundle."""
    if path.is_dir():
        yield path / RESULTS
        return
    with tempfile.TemporaryDirectory(prefix="weir-bundle-") as folder:
        try:
            with zipfile.ZipFile(path) as packed:
                _unpack(packed, path, Path(folder))
        except zipfile.BadZipFile as error:
            raise InputError(f"{path}: not a bundle, or damaged: {error}") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        yield Path(folder)


def _unpack(packed: zipfile.ZipFile, path: Path, folder: Path) -> None:
    """Unpacks the files of the result directory, under their names without any folder."""
    entries = [(found[1], entry) for entry in packed.infolist() if (found := _wanted(entry))]
    if not entries:
        raise InputError(f"{path}: not a bundle: it has no {RESULTS}")
    left = _MOST_BYTES
    if len(entries) > _MOST_FILES or sum(entry.file_size for _, entry in entries) > left:
        raise InputError(f"{path}: more than {_MOST_FILES} files, or more than 8 GiB unpacked")
    for name, entry in entries:
        with packed.open(entry) as source, (folder / name).open("xb") as target:
            while chunk := source.read(_CHUNK):
                left -= len(chunk)
                if left < 0:  # whatever it says of itself
                    raise InputError(f"{path}: more than 8 GiB unpacked")
                target.write(chunk)


def _wanted(entry: zipfile.ZipInfo) -> re.Match[str] | None:
    return _NAME.fullmatch(entry.filename)
