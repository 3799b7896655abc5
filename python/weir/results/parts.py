"""A part of results: runs that ended at about the same time, with their tables.

A part is a folder with one file per table and a record that says what of them belongs to which run,
with a checksum of each file and its own.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from weir.base.disk import sha256
from weir.scenario.sweep import Plan, Run

Tables = Mapping[str, pl.DataFrame]

SUFFIX = ".arrow"
"""What tables are kept in until they are joined: quicker to write than Parquet."""
SAMPLES = "samples"
"""Its columns are not those of all runs: controllers have some of their own."""
_RECORD = "run.json"
_SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that ended: its tables, or why it failed."""

    run: Run
    tables: Tables
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a run: its record, and where its rows are in the tables of a part."""

    part: Path
    record: Mapping[str, Any]
    begins: Mapping[str, int]

    @property
    def is_ok(self) -> bool:
        """Whether it succeeded."""
        return bool(self.record["status"] == "ok")

    def rows(self, name: str) -> range:
        """Those of a table."""
        begin = self.begins[name]
        return range(begin, begin + self.record["rows"].get(name, 0))


def files(runs: Sequence[Ended], known: Container[str]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The record of a part with these runs, and its files by their names.

    A table without rows says which columns there are. Once is enough: not if it is `known`.
    """
    contents = {f"{name}{SUFFIX}": content for name, content in _tables(runs, known)}
    record: dict[str, Any] = {
        "runs": [_entry(ended) for ended in runs],
        "files": {file: hashlib.sha256(c).hexdigest() for file, c in contents.items()},
    }
    record["checksum"] = _checksum(record)
    return record, {**contents, _RECORD: json.dumps(record).encode()}


def read(part: Path, plan: Plan) -> dict[str, Any] | None:
    """What a part says; None if that is nothing, or damaged."""
    try:
        record = json.loads((part / _RECORD).read_text(encoding="utf-8"))
        if record["checksum"] != _checksum(record):
            return None
        if any(sha256(part / file) != digest for file, digest in record["files"].items()):
            return None
        keys = {run.index: run.key for run in plan.runs}
        if any(keys.get(entry["run"]) != entry["key"] for entry in record["runs"]):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return dict(record)


def kept(part: Path, record: Mapping[str, Any]) -> dict[int, Kept]:
    """What is in a part of each of its runs, by their numbers."""
    begins = dict.fromkeys((Path(file).stem for file in record["files"]), 0)
    found = {}
    for entry in record["runs"]:
        found[entry["run"]] = Kept(part, entry, dict(begins))
        for name, rows in entry["rows"].items():
            begins[name] += rows
    return found


def number(part: Path) -> int:
    """The place of a part among all; what is none comes first."""
    text = part.name.split("-", 1)[0]
    return int(text) if text.isdecimal() else -1


def _tables(runs: Sequence[Ended], known: Container[str]) -> Iterator[tuple[str, bytes]]:
    """The tables of runs as files, with the numbers of the runs in front."""
    for name in dict.fromkeys(name for ended in runs for name in ended.tables):
        tables = [(e.run.index, e.tables[name]) for e in runs if name in e.tables]
        filled = [(index, table) for index, table in tables if not table.is_empty()]
        if name == _SUMMARY or (not filled and name in known):
            continue
        found = filled or tables[:1]
        joined = pl.concat(
            [table for _, table in found], how="diagonal" if name == SAMPLES else "vertical"
        )
        numbers = [pl.Series("run", [index], pl.UInt32) for index, _ in found]
        column = pl.concat(
            [
                number.new_from_index(0, len(t))
                for number, (_, t) in zip(numbers, found, strict=True)
            ]
        )
        content = io.BytesIO()
        joined.clone().insert_column(0, column).write_ipc(content)
        yield name, content.getvalue()


def _entry(ended: Ended) -> dict[str, Any]:
    """What a part says of a run."""
    tables = {name: table for name, table in ended.tables.items() if name != _SUMMARY}
    return {
        "run": ended.run.index,
        "key": ended.run.key,
        "status": "ok" if ended.error is None else "failed",
        "error": ended.error,
        "summary": ended.tables[_SUMMARY].row(0, named=True) if ended.error is None else {},
        "rows": {name: len(table) for name, table in tables.items() if len(table)},
        "columns": tables[SAMPLES].columns if SAMPLES in tables else [],
    }


def _checksum(record: Mapping[str, Any]) -> str:
    """The SHA-256 of a record, without the checksum that is in it."""
    kept = {key: value for key, value in record.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()
