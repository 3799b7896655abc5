"""Latencies of requests, pooled over the repeats of a case, as cells."""

from __future__ import annotations

import polars as pl

from weir.cells.cells import cell
from weir.cells.protocol import Cell
from weir.results.results import Results
from weir.statistics.intervals import Estimate, mean_interval
from weir.statistics.requests import percentiles


def labelled_flows(results: Results) -> pl.DataFrame:
    """Every flow of a successful run with the label of its case."""
    ok = results.runs.filter(status="ok").select("run", "label")
    return results.flows.join(ok, on="run")


def kind() -> pl.Expr:
    """What several flows of one entry of a scenario have in common: `small` of `small.2`."""
    return pl.col("name").str.extract(r"^(.*?)(?:\.\d+)?$").alias("kind")


class Latencies:
    """The raw samples of one result directory, read once."""

    def __init__(self, results: Results) -> None:
        named = labelled_flows(results).select("run", "flow", "label", kind())
        samples = results.requests.join(named, on=["run", "flow"])
        self._samples: dict[tuple[str, str], list[pl.Series]] = {}
        parts = samples.select("label", "kind", "run", "latency_ms").partition_by(
            "label", "kind", "run", as_dict=True
        )
        for (label, name, _), part in parts.items():
            self._samples.setdefault((str(label), str(name)), []).append(part["latency_ms"])

    def cell(
        self, label: str, percent: float, place: tuple[str, str, str], flows: str = "requests"
    ) -> Cell:
        """A percentile over all repeats of a case, at a table, row and column.

        `flows` is a flow, or the name that several of the case have in common. The interval is that
        of the single repeats' if all have one, since latencies of one run are alike, and else that
        of the ranks (`weir.statistics.requests`). `samples` are the requests behind it.
        """
        runs = self._samples.get((label, flows), [])
        (pooled,) = percentiles((value for own in runs for value in own), [percent])
        by_run = [percentiles(own, [percent])[0].value for own in runs]
        low, high = pooled.lo, pooled.hi
        if len(by_run) > 1 and None not in by_run:
            spread = mean_interval(by_run, bounds=(0.0, None))
            low, high = spread.lo, spread.hi
        ours = Estimate(pooled.value, low, high, len(by_run))
        return cell(*place, "ms", ours, note=pooled.refusal, samples=pooled.n)
