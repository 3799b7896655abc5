"""A result directory while it is being written.

Runs arrive some at a time and are kept as parts; at the end the parts become one Parquet file per
table and the directory gets its final name. Nothing ever appears half-written: a part, a table and
the whole directory are each written under a temporary name, synced and renamed. A part has
checksums of its files; the runs of one that does not fit them are still to be done.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import shutil
import weakref
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from weir.base.disk import TEMPORARY, sha256, sync, write_errors, write_new, write_text
from weir.base.errors import InputError
from weir.results import manifest as manifests
from weir.results import parts
from weir.scenario.sweep import Plan, Run

_PARTS = "parts"
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
        self._kept: dict[int, parts.Kept] = {}
        self._files: dict[str, Path] = {}
        found = sorted((path / _PARTS).iterdir(), key=parts.number)
        self._next = parts.number(found[-1]) + 1 if found else 0
        for part in found:
            if record := parts.read(part, plan):
                self._add(part, record)
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
            f"{run.case.label}, seed {run.seed}": kept.record["error"]
            for run, kept in self._known()
            if not kept.is_ok
        }

    @property
    def done(self) -> int:
        """How many runs have succeeded."""
        return sum(self._is_ok(run) for run in self._plan.runs)

    @property
    def summaries(self) -> list[dict[str, Any]]:
        """The table `summary` of each run that succeeded."""
        return [kept.record["summary"] for _, kept in self._known() if kept.is_ok]

    def keep(self, runs: Sequence[parts.Ended]) -> None:
        """Writes runs as one part."""
        runs = sorted(runs, key=lambda ended: ended.run.index)
        part = self.path / _PARTS / f"{self._next}-{runs[0].run.key}"
        temporary = part.with_suffix(TEMPORARY)
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            with write_errors(self.path):
                temporary.mkdir()
                record, files = parts.files(runs, self._files)
                write_new({temporary / file: content for file, content in files.items()})
                sync(temporary)
                temporary.rename(part)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        self._next += 1
        self._add(part, record)

    def publish(self, manifest: Mapping[str, Any]) -> Path:
        """Joins the parts, adds the manifest and gives the directory its final name.

        Once it has it, parts may be gone: a second call, after an interrupt, only ends the cleanup.
        """
        with write_errors(self.path):
            if not self._is_published:
                names = sorted(self._files)
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
        kept = self._kept.get(run.index)
        return kept is not None and kept.is_ok

    def _known(self) -> Iterator[tuple[Run, parts.Kept]]:
        """What is kept, in the order of the plan."""
        return ((run, kept) for run in self._plan.runs if (kept := self._kept.get(run.index)))

    def _add(self, part: Path, record: Mapping[str, Any]) -> None:
        self._files.update((Path(file).stem, part / file) for file in record["files"])
        self._kept.update(parts.kept(part, record))

    def _joined(self, name: str) -> pl.LazyFrame:
        """The rows of all runs, in the order of the plan, whenever each of them ended."""
        spans: list[tuple[Path, range]] = []
        for _, kept in self._known():
            if not kept.record["rows"].get(name):
                continue
            rows = kept.rows(name)
            if spans and spans[-1][0] == kept.part and spans[-1][1].stop == rows.start:
                rows = range(spans.pop()[1].start, rows.stop)
            spans.append((kept.part, rows))
        if not spans:
            return pl.scan_ipc(self._files[name])
        found = [
            pl.scan_ipc(part / f"{name}{parts.SUFFIX}").slice(rows.start, len(rows))
            for part, rows in spans
        ]
        if name != parts.SAMPLES:
            return pl.concat(found)
        # Controllers have columns `cc.NAME` of their own: null in the runs of others.
        columns = (column for _, kept in self._known() for column in kept.record["columns"])
        return pl.concat(found, how="diagonal").select("run", *dict.fromkeys(columns))

    def _runs_table(self) -> pl.DataFrame:
        rows = [
            {
                "run": run.index,
                "label": run.case.label,
                "stack": run.case.stack,
                "repeat": run.repeat,
                "seed": run.seed,
                "status": kept.record["status"],
                "error": kept.record["error"],
                **{key: run.case.point.get(key) for key in self._plan.swept},
                **kept.record["summary"],
            }
            for run, kept in self._known()
        ]
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
