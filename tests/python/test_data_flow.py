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


@pytest.fixture
def recorded(invoke: Invoke) -> Path:
    """Results of two runs whose packets are in the folder `packets`."""
    done = invoke(
        *("compare", "reno", "cubic", "--duration", "3s", "--repeat", "1"),
        *("--pcap", "packets", "--quiet"),
    )
    assert done.exit_code == 0, done.stderr
    return Path("results/compare/latest")


def test_recorded_packets_are_read_and_not_simulated_again(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, recorded: Path
) -> None:
    again = invoke("read", recorded, "--json")
    rows = json.loads(again.stdout)["rows"]
    for file in Path("packets").iterdir():
        assert file.stat().st_size > 0
    monkeypatch.setattr("weir.export.packets.record", lambda *_: pytest.fail("simulated again"))
    assert json.loads(invoke("read", recorded, "--json").stdout)["rows"] == rows
    assert len(rows) == 2
    assert all(row["limited_path_capacity"] > 0.5 for row in rows)


def test_packets_that_changed_or_went_are_simulated(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, recorded: Path
) -> None:
    one, other = sorted(Path("packets").iterdir())
    one.write_bytes(b"")
    other.unlink()
    simulated = Counter[str]()
    record = reading_record()

    def counted(run: Any, folder: Path) -> None:
        simulated[run.label] += 1
        record(run, folder)

    monkeypatch.setattr("weir.export.packets.record", counted)
    rows = json.loads(invoke("read", recorded, "--json").stdout)["rows"]
    assert simulated == {"reno": 1, "cubic": 1}
    assert len(rows) == 2


def reading_record() -> Any:
    from weir.export import packets

    return packets.record
