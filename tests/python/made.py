"""Short real runs for the tests of figures and reports, ways to spoil them, described studies."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

import weir
from weir.base.disk import sha256
from weir.cells import claims, tables
from weir.cells.protocol import Cell, JudgingStudy
from weir.studies import catalogue
from weir.studies.described import DescribedStudy

COMPARED = ("reno", "cubic", "bbr")


def described(name: str) -> DescribedStudy:
    """A study of its own for a test, which may change it."""
    found = catalogue.studies.__wrapped__()[name]
    assert isinstance(found, DescribedStudy)
    return found


def compared(out: Path, *stacks: str, **options: Any) -> weir.Results:
    """A comparison of a few simulated seconds, written below `out`."""
    asked = {"duration": "4s", "repeat": 2, "jobs": 1, **options}
    return weir.compare(*(stacks or COMPARED), out=out, show_progress=False, **asked)


def change(results: weir.Results, table: str, *columns: pl.Expr) -> weir.Results:
    """The results after some columns of a table have been replaced on disk."""
    path = results.path / f"{table}.parquet"
    pl.read_parquet(path).with_columns(columns).write_parquet(path)
    return sealed(results)


def sealed(results: weir.Results) -> weir.Results:
    """The results as they are on disk now, with checksums of the tables that are there."""
    path = results.path / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    files = results.path.glob("*.parquet")
    manifest["tables"] = {file.name: sha256(file) for file in files if file.is_file()}
    path.write_text(json.dumps(manifest), encoding="utf-8")
    return weir.load(results.path)


def drop_rows(results: weir.Results, table: str) -> weir.Results:
    """The results without the rows of a table."""
    path = results.path / f"{table}.parquet"
    pl.read_parquet(path).clear().write_parquet(path)
    return sealed(results)


def fail(results: weir.Results, label: str, seed: int, error: str) -> weir.Results:
    """The results as if one run had failed."""
    is_it = (pl.col("label") == label) & (pl.col("seed") == seed)
    (run,) = results.runs.filter(is_it)["run"]
    for table in ("flows", "links", "samples", "queues"):
        path = results.path / f"{table}.parquet"
        pl.read_parquet(path).filter(pl.col("run") != run).write_parquet(path)
    manifest = {**results.manifest, "complete": False}
    manifest["runs"] = {**manifest["runs"], "failed": {f"{label}, seed {seed}": error}}
    (results.path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    status = pl.when(is_it).then(pl.lit("failed")).otherwise(pl.col("status"))
    text = pl.when(is_it).then(pl.lit(error)).otherwise(pl.col("error"))
    return change(results, "runs", status.alias("status"), text.alias("error"))


def assert_top_claims_fit(study: JudgingStudy, rows: Sequence[Cell]) -> None:
    """Each pattern of a study's first claims has one, and its report shows all that they name."""
    known = [str(row["row"]) for row in rows if row["table"] == claims.TABLE]
    named = [[c for c in known if re.fullmatch(pattern, c)] for pattern in study.verdicts]
    assert all(named), list(zip(study.verdicts, named, strict=True))
    assert sum(map(len, named)) <= tables.MOST_VERDICTS, named
