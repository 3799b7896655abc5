"""A result directory while it is being written.

Runs arrive one by one and are kept as parts; at the end the parts become one Parquet file per table
and the directory gets its final name. Nothing ever appears half-written: a part, a table and the
whole directory are each written under a temporary name, synced and renamed. A part has checksums
of its files; one that does not fit them counts as a run that is still to be done.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import os
import re
import shutil
import weakref
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from weir.base.disk import TEMPORARY, sha256, sync, write_errors, write_new, write_text
from weir.base.errors import InputError
from weir.results import manifest as manifests
from weir.scenario.sweep import Plan, Run

Tables = Mapping[str, pl.DataFrame]

_PARTS = "parts"
_PART = ".arrow"
"""What single runs are kept in until they are joined: quicker to write than Parquet."""
_RECORD = "run.json"
_SUMMARY = "summary"
_SAMPLES = "samples"
_LOCK = ".lock"
_HEALTH = {
    "health": pl.String,
    "settings": pl.String,
    **dict.fromkeys(("late_ms_p50", "late_ms_p99", "late_ms_max"), pl.Float64),
    **dict.fromkeys(("on_time_ratio", "cpu_ratio"), pl.Float64),
    "unasked_drops": pl.UInt64,
}
"""Columns of `summary` that are null in the simulator."""


class RunDirectory:
    """The directory that the runs of one plan are written to."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path = path
        self._unlock = weakref.finalize(self, os.close, _lock(path))
        self._plan = plan
        self._records = {run.index: record for run in plan.runs if (record := self._read(run))}
        self._tables = self._table_names()
        self._is_published = False

    @classmethod
    def create(cls, root: Path, plan: Plan) -> RunDirectory:
        """A new directory `root/<name>/<UTC time>-<hash>`, under its temporary name."""
        home = root / slug(plan.name)
        stamp = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{plan.digest[:8]}"
        path = _claimed(home, stamp)
        try:
            with write_errors(home):
                (path / _PARTS).mkdir()
            return cls(path, plan)
        except KeyboardInterrupt:
            _remove(path)
            raise

    @classmethod
    def reopen(cls, root: Path, plan: Plan) -> RunDirectory:
        """The newest unfinished directory of the same plan.

        Raises:
            InputError: there is none, or another process is writing it.
        """
        home = root / slug(plan.name)
        stamp = rf"[0-9TZ-]+-{plan.digest[:8]}"
        names = re.compile(rf"\.?(({stamp})(?:-(\d+))?)({re.escape(TEMPORARY)})?")
        found = []
        for entry in home.iterdir() if home.is_dir() else []:
            match = names.fullmatch(entry.name)
            if match and (entry / _PARTS).is_dir():
                # Of the same second the one with the largest number is the newest: 10 after 2.
                found.append(((match[2], int(match[3] or 1)), match[1], entry))
        if not found:
            raise InputError(
                f"nothing to resume: {home} holds no unfinished results of exactly this plan"
            )
        _, name, path = max(found)
        temporary = home / f".{name}{TEMPORARY}"
        with write_errors(home):
            path.rename(temporary)
        return cls(temporary, plan)

    @property
    def pending(self) -> tuple[Run, ...]:
        """The runs that have not succeeded yet."""
        return tuple(run for run in self._plan.runs if not self._is_ok(run))

    @property
    def failures(self) -> dict[str, str]:
        """The error of each failed run, by `label, seed`."""
        return {
            f"{run.case.label}, seed {run.seed}": record["error"]
            for run in self._plan.runs
            if (record := self._records.get(run.index)) and record["status"] == "failed"
        }

    @property
    def done(self) -> int:
        """How many runs have succeeded."""
        return sum(self._is_ok(run) for run in self._plan.runs)

    @property
    def summaries(self) -> list[dict[str, Any]]:
        """The table `summary` of each run that succeeded."""
        records = (self._records.get(run.index) for run in self._plan.runs)
        return [record["summary"] for record in records if record and record["status"] == "ok"]

    def keep(self, run: Run, tables: Tables) -> None:
        """Writes the tables of a successful run."""
        summary = tables[_SUMMARY].row(0, named=True)
        others = {name: table for name, table in tables.items() if name != _SUMMARY}
        self._write(run, {"status": "ok", "error": None, "summary": summary}, others)

    def keep_failure(self, run: Run, error: str) -> None:
        """Writes down why a run failed."""
        self._write(run, {"status": "failed", "error": error, "summary": {}}, {})

    def publish(self, manifest: Mapping[str, Any]) -> Path:
        """Joins the parts, adds the manifest and gives the directory its final name.

        Once it has it, parts may be gone: a second call, after an interrupt, only ends the cleanup.
        """
        with write_errors(self.path):
            if not self._is_published:
                names = sorted(self._table_names())
                joined = {"runs": self._runs_table().lazy(), **{n: self._joined(n) for n in names}}
                _fill(self.path, joined, manifest)
                (self.path / _LOCK).unlink(missing_ok=True)
                self._unlock()
                self.path = _named(self.path)
                self._is_published = True
            if manifest["complete"]:
                shutil.rmtree(self.path / _PARTS, ignore_errors=True)
        return self.path

    def discard(self) -> None:
        """Removes the directory; for a plan of which nothing has been kept."""
        _remove(self.path)

    def _is_ok(self, run: Run) -> bool:
        record = self._records.get(run.index)
        return record is not None and record["status"] == "ok"

    def _part(self, run: Run) -> Path:
        return self.path / _PARTS / f"{run.index}-{run.key}"

    def _read(self, run: Run) -> dict[str, Any] | None:
        """What is kept of a run; None if that is nothing, or damaged."""
        part = self._part(run)
        try:
            record = json.loads((part / _RECORD).read_text(encoding="utf-8"))
            if record["checksum"] != _checksum(record):
                return None
            if any(sha256(part / file) != digest for file, digest in record["files"].items()):
                return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return dict(record)

    def _write(self, run: Run, record: dict[str, Any], tables: Tables) -> None:
        part = self._part(run)
        temporary = part.with_suffix(TEMPORARY)
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            with write_errors(self.path):
                temporary.mkdir()
                contents = {}
                for name, table in tables.items():
                    # An empty table says which columns there are: once is enough.
                    if not table.is_empty() or name not in self._tables:
                        numbered = table.select(pl.lit(run.index, pl.UInt32).alias("run"), pl.all())
                        content = io.BytesIO()
                        numbered.write_ipc(content)
                        contents[f"{name}{_PART}"] = content.getvalue()
                digests = {file: hashlib.sha256(c).hexdigest() for file, c in contents.items()}
                record = {**record, "files": digests}
                record["checksum"] = _checksum(record)
                contents[_RECORD] = json.dumps(record).encode()
                write_new({temporary / file: content for file, content in contents.items()})
                sync(temporary)
                temporary.rename(part)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        self._records[run.index] = record
        self._tables.update(tables)

    def _table_names(self) -> set[str]:
        records = (self._records.get(run.index) for run in self._plan.runs)
        return {Path(file).stem for record in records if record for file in record["files"]}

    def _joined(self, name: str) -> pl.LazyFrame:
        file = f"{name}{_PART}"
        kept = ((run, self._records.get(run.index)) for run in self._plan.runs)
        found = [
            self._part(run) / file
            for run, record in kept
            if record and record["status"] == "ok" and file in record["files"]
        ]
        if name != _SAMPLES:
            return pl.scan_ipc(found)
        # Controllers have columns `cc.NAME` of their own: null in the runs of others.
        return pl.concat([pl.scan_ipc(file) for file in found], how="diagonal")

    def _runs_table(self) -> pl.DataFrame:
        rows = []
        for run in self._plan.runs:
            if record := self._records.get(run.index):
                rows.append(
                    {
                        "run": run.index,
                        "label": run.case.label,
                        "stack": run.case.stack,
                        "repeat": run.repeat,
                        "seed": run.seed,
                        "status": record["status"],
                        "error": record["error"],
                        **{key: run.case.point.get(key) for key in self._plan.swept},
                        **record["summary"],
                    }
                )
        types = {"run": pl.UInt32, "error": pl.String, "jain_index": pl.Float64, **_HEALTH}
        return pl.DataFrame(rows, infer_schema_length=None, schema_overrides=types)


def write_joined(
    root: Path, name: str, tables: Mapping[str, pl.LazyFrame], manifest: Mapping[str, Any]
) -> Path:
    """Writes a directory `root/<name>/<UTC time>` at once, of tables that exist already."""
    path = _claimed(root / slug(name), f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}")
    try:
        with write_errors(path):
            _fill(path, tables, manifest)
            return _named(path)
    except BaseException:
        _remove(path)
        raise


def final_name(temporary: Path) -> str:
    """The name that a directory gets when it is complete."""
    return temporary.name.removeprefix(".").removesuffix(TEMPORARY)


def slug(name: str) -> str:
    """`name` as the name of a file or folder, never a path and never hidden."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "unnamed"


def _fill(path: Path, tables: Mapping[str, pl.LazyFrame], manifest: Mapping[str, Any]) -> None:
    """Writes tables, and the manifest with their checksums."""
    written = {path / f"{name}{TEMPORARY}": table for name, table in tables.items()}
    for temporary, table in written.items():
        table.sink_parquet(temporary)
    for temporary in written:  # once all are written: the file system then commits once
        sync(temporary)
    paths = [temporary.rename(temporary.with_suffix(".parquet")) for temporary in written]
    sums = {table.name: sha256(table) for table in paths}
    text = json.dumps({**manifest, "tables": sums}, indent=2, ensure_ascii=False)
    write_text(path / manifests.FILE, text)


def _named(temporary: Path) -> Path:
    """Gives a directory that is complete its final name."""
    final = temporary.parent / final_name(temporary)
    temporary.rename(final)
    sync(final.parent)
    _link_latest(final)
    return final


def _claimed(home: Path, stamp: str) -> Path:
    """A new folder under its temporary name, which no other process has or gives to its results."""
    number = 0
    while True:
        number += 1
        name = stamp if number == 1 else f"{stamp}-{number}"
        path = home / f".{name}{TEMPORARY}"
        with write_errors(home):
            home.mkdir(parents=True, exist_ok=True)
            try:
                path.mkdir()
            except (FileExistsError, FileNotFoundError):
                continue  # another process was quicker, or has just removed the empty `home`
            # The process that had the temporary name may have published since.
            if not (home / name).exists():
                return path
            path.rmdir()


def _checksum(record: Mapping[str, Any]) -> str:
    """The SHA-256 of a record, without the checksum that is in it."""
    kept = {key: value for key, value in record.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):  # other results are in there
        path.parent.rmdir()


def _lock(path: Path) -> int:
    """Holds `path` for this process alone, until the descriptor returned is closed.

    Raises:
        InputError: another process holds it.
    """
    with write_errors(path):
        descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT)
    try:
        # Windows has no such module, and no such lock.
        fcntl = importlib.import_module("fcntl")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        pass
    except BlockingIOError:
        os.close(descriptor)
        raise InputError(f"{path} is still being written by another process") from None
    return descriptor


def _link_latest(final: Path) -> None:
    # A convenience only: some file systems have no symbolic links.
    link = final.parent / "latest"
    temporary = final.parent / f".latest-{os.getpid()}{TEMPORARY}"
    with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(final.name, target_is_directory=True)
        temporary.replace(link)
