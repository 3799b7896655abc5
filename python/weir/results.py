"""Results on disk as polars frames, and what they say about each case."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from weir import metrics
from weir.errors import InputError
from weir.stats import Estimate, mean_interval
from weir.store import SCHEMA, is_results

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("runs", "flows", "samples", "queues", "links", "requests", "events")


def load(directory: str | Path) -> Results:
    """The results in `directory`, a run directory or the `latest` link to one.

    Raises:
        InputError: there are none, or a newer version of Weir wrote them.
    """
    path = Path(directory)
    if not is_results(path):
        raise InputError(f"{path}: no results here (a result directory has a manifest.json)")
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    if manifest["schema"] > SCHEMA:
        raise InputError(
            f"{path}: written in schema {manifest['schema']}, this version reads up to {SCHEMA}"
        )
    return Results(path.resolve(), manifest)


class Results:
    """One result directory. Tables are read when they are first asked for, and kept."""

    def __init__(self, path: Path, manifest: Mapping[str, Any]) -> None:
        self.path = path
        self.manifest = manifest

    @cached_property
    def runs(self) -> pl.DataFrame:
        """One row per run: label, stack, repeat, seed, swept keys, status and run totals."""
        return self.scan("runs").collect()

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row per run and flow: what it achieved."""
        return self.scan("flows").collect()

    @cached_property
    def samples(self) -> pl.DataFrame:
        """Senders over time: cwnd, ssthresh, in flight, RTT, pacing, goodput."""
        return self.scan("samples").collect()

    @cached_property
    def queues(self) -> pl.DataFrame:
        """Queues over time: length, delay, drops, marks, utilisation."""
        return self.scan("queues").collect()

    @cached_property
    def links(self) -> pl.DataFrame:
        """One row per run and link: what passed and what was lost."""
        return self.scan("links").collect()

    @cached_property
    def requests(self) -> pl.DataFrame:
        """One row per answered request."""
        return self.scan("requests").collect()

    @cached_property
    def events(self) -> pl.DataFrame:
        """Single happenings, as many as the scenario asked for."""
        return self.scan("events").collect()

    @cached_property
    def per_run(self) -> pl.DataFrame:
        """One row per successful run with every metric of `weir list metrics`."""
        runs = self.runs.filter(pl.col("status") == "ok")
        values = metrics.per_run(runs, self.flows, self.links)
        return runs.select("run", "label", "stack", "repeat", "seed", *self.swept).join(
            values, on="run", how="left"
        )

    @property
    def cases(self) -> list[dict[str, Any]]:
        """The cases in the order they were asked for: label, series, stack, point, scenario."""
        cases: list[dict[str, Any]] = self.manifest["cases"]
        return cases

    @property
    def swept(self) -> list[str]:
        """The keys that the sweep varied."""
        keys: list[str] = self.manifest["sweep"]
        return keys

    @property
    def failures(self) -> dict[str, str]:
        """The error of each failed run."""
        failed: dict[str, str] = self.manifest["runs"]["failed"]
        return failed

    def scan(self, table: str) -> pl.LazyFrame:
        """A table as a lazy frame, for results too large to read at once."""
        if table not in TABLES:
            raise KeyError(f"there is no table {table!r}; there are {', '.join(TABLES)}")
        return pl.scan_parquet(self.path / f"{table}.parquet")

    def to_pandas(self, table: str) -> pd.DataFrame:
        """A table for pandas, which must be installed."""
        return self.scan(table).collect().to_pandas()

    def values(self, label: str, metric: str) -> dict[int, float | None]:
        """The value of a metric in each repeat of a case, by seed."""
        of_case = self.per_run.filter(pl.col("label") == label)
        return dict(zip(of_case["seed"], of_case[metric], strict=True))

    def estimate(self, label: str, metric: str) -> Estimate:
        """The mean of a metric over the repeats of a case, with its 95 % interval."""
        return mean_interval(self.values(label, metric).values(), metrics.BY_NAME[metric].bounds)

    def measured(self) -> list[metrics.Metric]:
        """The metrics that have a value in at least one run."""
        return [m for m in metrics.METRICS if self.per_run[m.name].is_not_null().any()]

    def summary(self) -> pl.DataFrame:
        """One row per case and metric: mean, 95 % interval, number of repeats."""
        rows = []
        for case in self.cases:
            for metric in self.measured():
                e = self.estimate(case["label"], metric.name)
                rows.append((case["label"], metric.name, e.mean, e.lo, e.hi, e.n))
        schema = {
            "label": pl.String,
            "metric": pl.String,
            "mean": pl.Float64,
            "lo": pl.Float64,
            "hi": pl.Float64,
            "n": pl.Int64,
        }
        return pl.DataFrame(rows, schema, orient="row")

    def __repr__(self) -> str:
        done, planned = self.manifest["runs"]["ok"], self.manifest["runs"]["planned"]
        return f"<weir.Results {self.manifest['name']}: {done} of {planned} runs, {self.path}>"

    def __rich__(self) -> Any:
        """The table that the command line prints."""
        from weir.tables import cases_table

        return cases_table(self)

    def _repr_html_(self) -> str:
        from weir.tables import cases_html

        return cases_html(self)
