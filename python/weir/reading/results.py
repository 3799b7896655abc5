"""The flows of a result directory, as packets or as logs that the readers of files understand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from weir.export import packets, qlog
from weir.export.runs import ExportedRun, chosen
from weir.reading.policed import COLUMNS, Policer
from weir.results.results import damage_reported, load
from weir.running import runner
from weir.scenario.source import REAL_PATH, SIM, VIRTUAL, Effective


@dataclass(frozen=True)
class Recorded:
    """The files of a run."""

    name: str
    """What the run is called in tables."""
    files: list[Path]
    policers: Mapping[str, Policer] = field(default_factory=dict)
    """Policers that a path test found, by the name of the flow."""


def recorded(folder: Path) -> Iterator[Recorded]:
    """The runs of `folder`, each of which has its files until the next one is yielded.

    What `--pcap` recorded is read, if it is still there. Other runs of the simulator and of guests
    happen once more and are captured. Of the other worlds there are only samples, which become
    qlogs.

    Raises:
        InputError: these are no results, or have no flows with a connection.
        RunError: a run could not be repeated.
    """
    results = load(folder)
    with damage_reported(folder):
        runs = chosen(results, None, None)
    for run in runs:
        with TemporaryDirectory() as scratch:
            yield Recorded(f"{folder}: {run.title}", _files(run, Path(scratch)), _policers(run))


def _policers(run: ExportedRun) -> dict[str, Policer]:
    if run.world != REAL_PATH:
        return {}
    found = run.table("limits").filter(pl.col("policer_mbps").is_not_null())
    return {name: values for name, *values in found.select("name", *COLUMNS).iter_rows()}


def _captured(run: ExportedRun) -> list[Path]:
    """The file that `--pcap` recorded, if it is there as it was written."""
    known = run.results.manifest.get("captures", ())
    own = [Path(one["file"]) for one in known if one["run"] == run.index and _is_as_written(one)]
    return own[-1:]


def _is_as_written(one: Mapping[str, Any]) -> bool:
    try:
        return Path(one["file"]).stat().st_size == int(one["bytes"])
    except OSError:
        return False


def _files(run: ExportedRun, scratch: Path) -> list[Path]:
    if captured := _captured(run):
        return captured
    if run.world == SIM:
        packets.record(run, scratch)
        return [scratch / f"{run.stem}-senders.pcapng"]
    if run.world == VIRTUAL and not run.case["scenario"].get("contender"):
        capture = scratch / "run.pcapng"
        scenario = Effective.from_json(json.dumps(run.case["scenario"], ensure_ascii=False))
        runner.execute(scenario, run.seed, run.world, None, capture)
        return [capture]
    qlog.write(run.results, [run], scratch)
    return sorted(scratch.glob(f"*{qlog.SUFFIX}"))
