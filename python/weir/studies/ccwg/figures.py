"""Verdicts bundle by bundle, and what goodput and window did over time."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weir.plots.figure import Figure
from weir.plots.timeline import TimePanel, timeline
from weir.report.cells import envelopes_table
from weir.report.html import slug
from weir.report.model import ReportSection, ReportTable
from weir.report.study import study_table
from weir.results import Results
from weir.studies.ccwg.bundle import MSS, Bundle
from weir.studies.ccwg.experiment import BUNDLES
from weir.studies.cells import Cells, runs_of

_SLICE_S = 0.1


def sections(results: Results, cells: Cells) -> Sequence[ReportSection]:
    """One per bundle that has verdicts."""
    return [
        ReportSection(
            bundle.name[:1].upper() + bundle.name[1:],
            paragraphs=[f"Source: {bundle.source}."],
            tables=[
                envelopes_table(cells.table(bundle.name), "", ("what is checked", "stack")),
                *_maxima(cells.table(f"{bundle.name}: maxima of cwnd")),
            ],
            figures=[_figure(results, bundle)] if bundle.checks else [],
        )
        for bundle in BUNDLES
        if cells.table(bundle.name).all
    ]


def _maxima(cells: Cells) -> list[ReportTable]:
    return [study_table("Maxima of the congestion window", cells.all)] if cells.all else []


def _figure(results: Results, bundle: Bundle) -> Figure:
    labels = {bundle.label(stack): stack for stack in bundle.stacks}
    runs = (
        results.runs.filter(pl.col("label").is_in(list(labels)), status="ok")
        .sort("seed")
        .unique("label", keep="first", maintain_order=True)
        .select("run", series=pl.col("label").replace_strict(labels, return_dtype=pl.String))
    )
    level = None if bundle.level_mbps is None else (bundle.level_mbps, "the link")
    panels = [
        TimePanel("Goodput", "Mbit/s", _over_time(results, runs, "goodput_mbps", 1.0), level),
        TimePanel(
            "Congestion window", "segments", _over_time(results, runs, "cwnd_bytes", 1 / MSS)
        ),
        TimePanel("Round-trip time", "ms", _over_time(results, runs, "rtt_ms", 1.0)),
    ]
    return timeline(
        slug(bundle.name),
        bundle.name,
        "The first seed, in slices of 100 ms.",
        panels,
        bundle.moments,
        runs_of(results, *(f"{label}" for label in labels)),
    )


def _over_time(results: Results, runs: pl.DataFrame, column: str, scale: float) -> pl.DataFrame:
    """`series`, `t_s` and `value` of the first flow."""
    slices = (pl.col("t_s") / _SLICE_S - 1e-6).floor() * _SLICE_S + _SLICE_S / 2
    rows = results.scan("samples").filter(pl.col("flow") == 0).join(runs.lazy(), on="run")
    means = rows.group_by("series", t_s=slices, maintain_order=True).agg(
        value=pl.col(column).cast(pl.Float64).mean() * scale
    )
    return means.sort("series", "t_s").drop_nulls("value").collect()
