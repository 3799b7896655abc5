"""Data goes one way: results are loaded once, tables opened once, packets read where they are."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import Invoke

from weir import load
from weir.api import reports
from weir.export import packets
from weir.export.runs import ExportedRun
from weir.results import manifest
from weir.running import runner
from weir.scenario.plans import Comparison
from weir.scenario.source import Effective, Sweep


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file of a result directory is opened."""
    found: Counter[str] = Counter()
    scan, read = pl.scan_parquet, manifest.read

    def scanned(path: Path, *args: Any, **settings: Any) -> pl.LazyFrame:
        found[path.name] += 1
        return scan(path, *args, **settings)

    def loaded(folder: Path) -> dict[str, Any]:
        found[manifest.FILE] += 1
        return read(folder)

    monkeypatch.setattr(pl, "scan_parquet", scanned)
    monkeypatch.setattr(manifest, "read", loaded)
    return found


def test_a_comparison_with_a_report_loads_its_results_once(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, opened: Counter[str]
) -> None:
    monkeypatch.setattr("weir.cli.plans.draw", lambda results, *_: reports.write(results))
    done = invoke("compare", "reno", "cubic", "--duration", "5s", "--repeat", "3", "--quiet")
    assert done.exit_code == 0, done.stderr
    assert Path("results/compare/latest/report.html").is_file()
    assert opened.pop(manifest.FILE) == 1
    assert {"samples.parquet", "queues.parquet", "flows.parquet"} <= set(opened)
    assert max(opened.values()) <= 2, opened


def test_a_large_table_stays_in_its_file(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, opened: Counter[str]
) -> None:
    assert invoke("compare", "reno", "--duration", "5s", "--repeat", "1", "-q").exit_code == 0
    whole = load("results/compare/latest").samples
    monkeypatch.setattr("weir.results.results._KEPT_BYTES", 0)
    results = load("results/compare/latest")
    before = opened["samples.parquet"]
    assert results.scan("samples").collect().equals(whole)
    assert "PARQUET" in results.scan("samples").explain().upper()
    assert opened["samples.parquet"] == before + 1


def test_a_plan_needs_no_json(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("JSON inside one process")

    monkeypatch.setattr(Effective, "from_json", refused)
    monkeypatch.setattr(json, "loads", refused)
    sweep: Sweep = {"topology.queue": ("0.5bdp", "2bdp")}
    plan = Comparison(["reno", "cubic"], duration="1s", repeat=1, sweep=sweep).plan()
    assert [case.scenario.fields["topology"]["queue"] for case in plan.cases] == [
        *("0.5bdp", "2bdp", "0.5bdp", "2bdp")
    ]
    for run in plan.runs:
        assert runner.execute(run.case.scenario, run.seed)["flows"].height == 1


COMPARISON = ("compare", "reno", "cubic", "--duration", "3s", "--repeat", "1", "--quiet")


def connections(invoke: Invoke, results: Path) -> list[dict[str, Any]]:
    """The rows of `weir read`, but for the names of the results."""
    done = invoke("read", results, "--json")
    assert done.exit_code == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return [{**row, "file": row["file"].rpartition(": ")[2]} for row in rows]


@pytest.fixture
def recorded(invoke: Invoke) -> Path:
    """Results of two runs whose packets are in the folder `packets`."""
    done = invoke(*COMPARISON, "--pcap", "packets")
    assert done.exit_code == 0, done.stderr
    return Path("results/compare/latest").resolve()


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the run of each case is simulated again."""
    found: Counter[str] = Counter()
    record = packets.record

    def counted(run: ExportedRun, folder: Path) -> Any:
        found[run.label] += 1
        return record(run, folder)

    monkeypatch.setattr(packets, "record", counted)
    return found


def test_recorded_packets_are_read_and_not_simulated_again(
    invoke: Invoke, recorded: Path, simulated: Counter[str]
) -> None:
    rows = connections(invoke, recorded)
    assert not simulated
    assert len(rows) == 2
    assert invoke(*COMPARISON).exit_code == 0
    again = Path("results/compare/latest").resolve()
    assert again != recorded
    assert rows == connections(invoke, again)
    assert simulated == {"reno": 1, "cubic": 1}


def test_packets_that_changed_or_went_are_simulated(
    invoke: Invoke, recorded: Path, simulated: Counter[str]
) -> None:
    rows = connections(invoke, recorded)
    one, other = sorted(Path("packets").iterdir())
    one.write_bytes(b"")
    other.unlink()
    assert connections(invoke, recorded) == rows
    assert simulated == {"reno": 1, "cubic": 1}
