"""The report of a model: its parameters, and the flow as measured and on the model."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path as File

import polars as pl

from weir import _native
from weir.base.disk import write_text
from weir.base.grid import number
from weir.graphics import encode, theme
from weir.graphics.chart import Chart, Compound, below_each_other, channel, inline, layered
from weir.modelling.measured import COMPARED, Measurement
from weir.modelling.simulate import Check
from weir.plots import Figure
from weir.report.html import render
from weir.report.model import Cell, Provenance, Report, ReportSection, ReportTable

_HEIGHT = 150


def write_model(measured: Measurement, check: Check | None, file: File, command: str) -> None:
    """Writes the report.

    Raises:
        StoreError: it cannot be written.
    """
    sections = [path_section(measured)]
    if check:
        sections.append(check_section(measured.slices, check))
    title = f"Path of {measured.source}"
    write_report(title, "What path did this flow take?", sections, file, command)


def write_report(
    title: str, question: str, sections: list[ReportSection], file: File, command: str
) -> None:
    """Writes a report of these sections.

    Raises:
        StoreError: it cannot be written.
    """
    created = datetime.now(UTC).isoformat(timespec="seconds")
    provenance = Provenance(command, _native.version(), created)
    write_text(file, render(Report(title, question, sections, provenance)))


def path_section(measured: Measurement) -> ReportSection:
    """The parameters of the path."""
    rows = [
        [Cell(title, "name"), Cell(value), Cell(unit, "text")]
        for _, title, value, unit in measured.path.named()
    ]
    headers = ["parameter", "estimate (95 % interval)", "unit"]
    table = ReportTable("Parameters of the path", headers, rows)
    return ReportSection("Path", warnings=list(measured.warnings), tables=[table])


def check_section(slices: pl.DataFrame, check: Check) -> ReportSection:
    """The measured flow on the model."""
    flow = check.flow
    rows = []
    for name, (title, unit, factor) in COMPARED.items():
        mean, error = check.repeated[name].mean, check.error(name)
        rows.append(
            [
                Cell(f"{title}, {unit}", "name"),
                Cell(number(getattr(flow, name) * factor, 4)),
                Cell("–" if mean is None else number(mean * factor, 4)),
                Cell("–" if error is None else f"{error:+.1%}"),
            ]
        )
    headers = ["", "measured", "on the model", "difference"]
    table = ReportTable("The flow, measured and simulated", headers, rows)
    stack = f"{flow.stack}{', which is assumed' if flow.is_assumed else ''}"
    text = (
        f"{flow.name}, {flow.duration_s:.1f} s, limited by: {flow.limit}. Its controller: {stack}. "
        f"The model ran {check.runs} times."
    )
    return ReportSection("Check", [text], tables=[table], figures=[_figure(slices, check)])


def _figure(slices: pl.DataFrame, check: Check) -> Figure:
    samples = check.samples
    rtt = pl.concat([_line(slices, "rtt_ms_max", "measured"), _line(samples, "rtt_ms", "model")])
    rate = pl.concat(
        [
            _line(slices, "goodput_mbps", "measured"),
            _line(samples.pipe(_coarse, slices.height), "goodput_mbps", "model"),
        ]
    )
    panels = [
        _panel(rtt, "RTT", "ms", is_last=False),
        _panel(rate, "Goodput", "Mbit/s", is_last=True),
    ]
    chart = below_each_other(*panels, spacing=12).resolve_scale(x="shared")
    caption = (
        "The flow as measured (largest RTT of each slice) and in one simulation on the model. "
        "Losses come at other times: the level and the shape should agree, not each peak."
    )
    return Figure("check", "Measured and simulated", caption, chart, rate)


def _line(frame: pl.DataFrame, column: str, name: str) -> pl.DataFrame:
    own = frame.select("t_s", pl.col(column).alias("value")).drop_nulls()
    return own.with_columns(pl.lit(name).alias("what"))


def _coarse(samples: pl.DataFrame, slices: int) -> pl.DataFrame:
    """The samples in as many intervals as there are slices."""
    group = max(samples.height // max(slices, 1), 1)
    index = pl.int_range(pl.len()) // group
    return samples.group_by(index.alias("g"), maintain_order=True).agg(
        pl.col("t_s").first(), pl.col("goodput_mbps").mean()
    )


def _panel(frame: pl.DataFrame, title: str, unit: str, *, is_last: bool) -> Compound:
    scale = {"domain": ["measured", "model"], "range": [theme.COLD, theme.WARM]}
    line = (
        Chart(inline(frame))
        .mark("line", strokeWidth=1.2, opacity=0.8, clip=True)
        .encode(
            x=encode.time(None, is_last=is_last),
            y=channel("value:Q", title=unit, axis={"tickCount": 5}),
            color=channel("what:N", scale=scale, legend={"title": None, "orient": "right"}),
        )
    )
    return layered(line).properties(title=title, width=theme.WIDTH - 150, height=_HEIGHT)
