"""CSV: every table as a file, one row per line, numbers as Python writes them, nulls empty."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from weir.export.runs import ExportedRun
from weir.results.results import TABLES, Results


def write(results: Results, runs: Sequence[ExportedRun], folder: Path) -> None:
    """Writes `TABLE.csv` for each table that the results have, streamed."""
    wanted = [run.index for run in runs]
    for table in TABLES:
        # Older results lack tables that came later.
        if (results.path / f"{table}.parquet").exists():
            rows = results.scan(table).filter(pl.col("run").is_in(wanted))
            rows.sink_csv(folder / f"{table}.csv")
