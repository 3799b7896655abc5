"""`weir bundle` and `weir cite`: one file that repeats its results, also one of an attacker."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import Invoke

from weir import _native
from weir.bundle import checking
from weir.bundle.citation import bibtex
from weir.results import manifest


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from weir import compare

    out = tmp_path_factory.mktemp("results")
    return compare("reno", "cubic", duration="1s", repeat=2, seed=3, out=out).path


@pytest.fixture
def bundle(results: Path, tmp_path: Path, invoke: Invoke) -> Path:
    path = tmp_path / "b.crate.zip"
    assert invoke("bundle", str(results), "--out", str(path)).stdout == f"{path}\n"
    return path


def test_the_same_results_give_the_same_bytes(bundle: Path, results: Path, invoke: Invoke) -> None:
    again = bundle.parent / "again" / bundle.name
    invoke("bundle", str(results), "-o", str(again))
    assert again.read_bytes() == bundle.read_bytes()


def test_it_holds_what_made_the_results(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as packed:
        names = set(packed.namelist())
        crate = json.loads(packed.read("ro-crate-metadata.json"))
        scenario = packed.read("scenarios/reno.toml").decode()
        readme = packed.read("README.md").decode()
    entities = {one["@id"]: one for one in crate["@graph"]}
    assert {one["@id"] for one in entities["./"]["hasPart"]} == names - {"ro-crate-metadata.json"}
    assert {"Dockerfile", "results/manifest.json", "results/runs.parquet"} <= names
    assert "weir bundle --check b.crate.zip" in readme
    lowered = _native.Scenario.parse(scenario, [], "bundle")
    assert lowered.fields()["measure"]["duration"] == "1s"


def test_its_runs_are_repeated(bundle: Path, tmp_path: Path, invoke: Invoke) -> None:
    done = invoke("bundle", "--check", str(bundle), "--json")
    assert done.exit_code == 0
    rows = json.loads(done.stdout)["rows"]
    assert [(r["label"], r["seed"], r["verdict"]) for r in rows] == [
        (label, seed, "same") for seed in (3, 4) for label in ("reno", "cubic")
    ]
    shutil.unpack_archive(bundle, tmp_path / "folder")
    assert invoke("bundle", "--check", str(tmp_path / "folder")).exit_code == 0


def changed(bundle: Path, name: str, change: Any) -> Path:
    """The bundle with another content of a file, or without it."""
    path = bundle.with_name("changed.crate.zip")
    with zipfile.ZipFile(bundle) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename == name:
                content = change(content)
            new.writestr(entry.filename, content)
    return path


def test_a_run_that_differs_is_named(bundle: Path, invoke: Invoke) -> None:
    def other_queue(text: bytes) -> bytes:
        found = json.loads(text)
        found["cases"][0]["scenario"]["topology"]["rate"] = "5mbit"
        return json.dumps(found).encode()

    path = changed(bundle, f"results/{manifest.FILE}", other_queue)
    done = invoke("bundle", "--check", str(path), "--json")
    verdicts = [row["verdict"] for row in json.loads(done.stdout)["rows"]]
    assert (done.exit_code, verdicts) == (1, ["differs", "same"] * 2)


def test_runs_in_real_time_are_not_repeated(bundle: Path, invoke: Invoke) -> None:
    def real(text: bytes) -> bytes:
        found = json.loads(text)
        for case in found["cases"]:
            case["world"] = "udp"
        return json.dumps(found).encode()

    path = changed(bundle, f"results/{manifest.FILE}", real)
    done = invoke("bundle", "--check", str(path))
    assert done.exit_code == 1
    assert "world udp: no two of its runs are the same" in " ".join(done.stdout.split())


def test_what_is_no_bundle_is_refused(
    bundle: Path, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> str:
        done = invoke("bundle", "--check", str(path))
        assert done.exit_code == 2, done.output
        return str(done.output)

    (tmp_path / "text").write_text("x")
    assert "not a bundle, or damaged" in refused(tmp_path / "text")
    with zipfile.ZipFile(tmp_path / "empty", "w") as empty:
        empty.writestr("../results/manifest.json", "{}")
        empty.writestr("results/../../x.json", "{}")
    assert "it has no results/" in refused(tmp_path / "empty")
    broken = changed(bundle, "results/runs.parquet", lambda content: content[:-1])
    assert "damaged" in refused(broken)
    monkeypatch.setattr(checking, "_MOST_BYTES", 1000)
    assert "more than 8 GiB" in refused(bundle)


def test_nothing_is_overwritten(bundle: Path, results: Path, invoke: Invoke) -> None:
    done = invoke("bundle", str(results), "--out", str(bundle))
    assert done.exit_code == 2
    assert "it is there already" in done.output


def test_a_citation_names_version_command_and_numbers(results: Path, invoke: Invoke) -> None:
    (row,) = json.loads(invoke("cite", str(results), "--json").stdout)["rows"]
    assert row["version"].startswith(f"Weir {_native.version()}")
    assert row["command"].startswith("weir compare reno cubic")
    printed = invoke("cite", str(results)).stdout
    assert bibtex(row) in printed
    assert f"@misc{{weir-{row['hash']}," in printed
    assert pl.read_parquet(results / "runs.parquet").height == 4
