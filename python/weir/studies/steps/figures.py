"""Every link over time, and the tables of the study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from weir.plots.figure import Figure
from weir.plots.timeline import TimePanel, timeline
from weir.report.cells import claims_table, value_table
from weir.report.html import slug
from weir.report.model import ReportSection
from weir.results import Results
from weir.studies.cells import Cells, runs_of
from weir.studies.steps.experiment import SAMPLE_S
from weir.studies.steps.links import LINKS, Link, goodput_of
from weir.studies.steps.measures import DELAY, SETTLED, USED

_CAPACITY = "the link"
"""The series of what it could carry."""

_STEP_S = 0.5


def sections(results: Results, cells: Cells) -> Sequence[ReportSection]:
    """Tables first, then each link."""
    used = value_table(cells.table(USED), "Mean and 95 % interval.", "control")
    settled = value_table(
        cells.table(SETTLED),
        "Seconds, mean and 95 % interval where every repeat settled; otherwise see the notes.",
        "control",
    )
    delay = value_table(cells.table(DELAY), "Milliseconds, mean and 95 % interval.", "control")
    return [
        ReportSection("What is used of each link", tables=[used]),
        ReportSection("How fast a step is followed", tables=[settled]),
        ReportSection("How long the queue gets", tables=[delay]),
        *_links(results),
        ReportSection("What was expected", tables=[claims_table(cells)]),
    ]


def _links(results: Results) -> Iterator[ReportSection]:
    for link in LINKS:
        yield ReportSection(
            link.name.capitalize(), paragraphs=[link.story], figures=[_figure(results, link)]
        )


def _figure(results: Results, link: Link) -> Figure:
    panels = [
        TimePanel("Goodput", "Mbit/s", pl.concat([_goodput(results, link), _capacity(link)])),
        TimePanel("Queueing delay", "ms", _delay(results, link)),
    ]
    moments = [(change.at_s, change.event) for change in link.changes if change.event]
    caption = (
        "Mean over the repeats, in slices of half a second; “the link” is what it could carry."
    )
    return timeline(
        slug(link.name),
        link.name.capitalize(),
        caption,
        panels,
        moments,
        runs_of(results, f"{link.name},"),
    )


def _goodput(results: Results, link: Link) -> pl.DataFrame:
    return _over_time(results, link, "samples", "goodput_mbps")


def _delay(results: Results, link: Link) -> pl.DataFrame:
    return _over_time(results, link, "queues", "queue_delay_ms")


def _over_time(results: Results, link: Link, table: str, column: str) -> pl.DataFrame:
    """`series` (the control), `t_s` and `value`, mean over the repeats and over each slice."""
    is_own = pl.col("label").str.starts_with(f"{link.name},")
    runs = results.runs.filter(is_own, pl.col("status") == "ok").select(
        "run", series=pl.col("label").str.split(", ").list.last()
    )
    slices = ((pl.col("t_s") - SAMPLE_S / 2) / _STEP_S).floor() * _STEP_S + _STEP_S / 2
    rows = results.scan(table).join(runs.lazy(), on="run").sort("run")
    means = rows.group_by("series", t_s=slices, maintain_order=True).agg(
        value=pl.col(column).mean()
    )
    return means.collect().select("series", "t_s", "value")


def _capacity(link: Link) -> pl.DataFrame:
    """Two points per phase: a staircase."""
    rows = [
        (_CAPACITY, at, goodput_of(change.mbps))
        for change, end in link.phases()
        for at in (float(change.at_s), float(end))
    ]
    return pl.DataFrame(
        rows, {"series": pl.String, "t_s": pl.Float64, "value": pl.Float64}, orient="row"
    )
