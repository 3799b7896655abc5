"""The report of an advice: the sentence, a picture of all controllers, the commands, the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path as File

import altair as alt
import polars as pl

from weir.advice.predictions import Prediction
from weir.advice.words import best
from weir.estimates.quantity import Quantity
from weir.graphics import theme
from weir.graphics.figure import inline, layered
from weir.modelling.measured import Measurement
from weir.modelling.report import check_section, path_section, write_report
from weir.modelling.simulate import Check
from weir.plots import Figure
from weir.report.model import Cell, ReportSection, ReportTable

_ROW = 26


def write_advice(
    measured: Measurement,
    check: Check,
    found: Sequence[Prediction],
    said: tuple[str, Sequence[str]],
    file: File,
    command: str,
) -> None:
    """Writes the report.

    Raises:
        StoreError: it cannot be written.
    """
    sentence, commands = said
    now = check.flow.stack.removeprefix("rack/")
    advice = ReportSection(
        "Advice", [sentence], tables=[_table(found)], figures=[_figure(found, now)]
    )
    steps = ReportSection("How to do it", points=list(commands))
    sections = [advice, steps, path_section(measured), check_section(measured.slices, check)]
    title = f"Advice for {measured.source}"
    write_report(title, "Which controller would help on this path?", sections, file, command)


def _table(found: Sequence[Prediction]) -> ReportTable:
    headers = ["controller", "goodput, Mbit/s", "gain", "RTT P95, ms", "completion, s"]
    rows = [
        [
            Cell(one.option.name, "name"),
            Cell(one.goodput_mbps.text(3)),
            Cell(one.gain.text(3)),
            Cell(one.rtt_ms_p95.text(3)),
            Cell(one.fct_s.text(3) if one.fct_s else "–"),
            Cell("–" if one.neighbour is None else f"{one.neighbour:.2f}"),
        ]
        for one in found
    ]
    note = (
        "In brackets: 95 % intervals of one transfer. Last column: the goodput of a CUBIC flow on "
        "the same path, over its goodput next to another CUBIC flow."
    )
    return ReportTable("Predictions", [*headers, "CUBIC next to it"], rows, note=note)


def _figure(found: Sequence[Prediction], now: str) -> Figure:
    chosen = best(found)
    rows = [
        {
            "name": one.option.name,
            "role": "advised"
            if one is chosen
            else "measured"
            if one.option.name == now
            else "other",
            **_values("goodput", one.goodput_mbps),
            **_values("delay", one.rtt_ms_p95),
        }
        for one in found
    ]
    frame = pl.DataFrame(rows)
    panels = [
        _panel(frame, "goodput", "Goodput, Mbit/s: more is better", is_first=True),
        _panel(frame, "delay", "RTT P95, ms: less is better", is_first=False),
    ]
    caption = (
        "Each controller's transfer, simulated on the model of the path. A point is the median, a "
        "line the 95 % interval of one transfer, with the uncertainty of the model."
    )
    return Figure("advice", "Goodput and delay", caption, alt.hconcat(*panels, spacing=24), frame)


def _values(name: str, quantity: Quantity) -> dict[str, float | None]:
    return {name: quantity.value, f"{name}_lo": quantity.low, f"{name}_hi": quantity.high}


def _panel(frame: pl.DataFrame, name: str, title: str, *, is_first: bool) -> alt.LayerChart:
    roles = ["advised", "measured", "other"]
    colour = alt.Color(
        "role:N",
        scale=alt.Scale(domain=roles, range=[theme.WARM, theme.COLD, theme.SOFT]),
        legend=alt.Legend(title=None, orient="bottom") if is_first else None,
    )
    axis = alt.Axis(title=None, labelLimit=170, ticks=False) if is_first else None
    base = alt.Chart(inline(frame)).encode(
        y=alt.Y("name:N", sort=frame["name"].to_list(), axis=axis), color=colour
    )
    x = alt.X(f"{name}:Q", title=title, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    lines = base.mark_rule(strokeWidth=2).encode(
        x=alt.X(f"{name}_lo:Q", title=title), x2=alt.X2(f"{name}_hi:Q")
    )
    points = base.mark_circle(size=70, opacity=1).encode(x=x)
    width = (theme.WIDTH - 200) // 2
    return layered(lines, points).properties(width=width, height=_ROW * frame.height)
