"""The report of an advice: the sentence, a picture of all controllers, the commands, the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path as File

import polars as pl

from weir.advice.decision import Decision, Role, Verdict
from weir.advice.table import HEADERS, NOTE, cells
from weir.estimates.quantity import Quantity
from weir.graphics import names, theme
from weir.graphics.chart import Chart, Compound, beside_each_other, channel, inline, layered
from weir.modelling.measured import Measurement
from weir.modelling.report import check_section, path_section, write_report
from weir.modelling.simulate import Check
from weir.plots import Figure
from weir.report.model import Cell, ReportSection, ReportTable

_ROW = 26
_COLOURS = {
    Role.ADVISED: theme.WARM,
    Role.LIKELY: theme.WARM,
    Role.HARMFUL: theme.WARN,
    Role.MEASURED: theme.COLD,
    Role.OTHER: theme.SOFT,
}


def write_advice(
    measured: Measurement,
    check: Check,
    decision: Decision,
    said: tuple[str, Sequence[str]],
    file: File,
    command: str,
) -> None:
    """Writes the report.

    Raises:
        StoreError: it cannot be written.
    """
    sentence, commands = said
    warnings = [refusal] if (refusal := check.refusal) else []
    advice = ReportSection(
        "Advice",
        [sentence],
        warnings=warnings,
        tables=[_table(decision)],
        figures=[_figure(decision)],
    )
    is_open = decision.verdict is Verdict.INCONCLUSIVE
    title = "How to find out" if is_open else "How to do it"
    steps = [ReportSection(title, points=list(commands))] if commands else []
    sections = [advice, *steps, path_section(measured), check_section(measured.slices, check)]
    title = f"Advice for {measured.source}"
    write_report(title, "Which controller would help on this path?", sections, file, command)


def _table(decision: Decision) -> ReportTable:
    rows = [
        [Cell(name, "name"), *map(Cell, values), Cell(role, "text")]
        for name, *values, role in (cells(decision, one) for one in decision.found)
    ]
    return ReportTable("Controllers", list(HEADERS), rows, note=NOTE)


def _figure(decision: Decision) -> Figure:
    rows = [
        {
            "name": one.option.name,
            "role": str(decision.role(one)),
            **_values("goodput", one.goodput_mbps),
            **_values("delay", one.rtt_ms_p95),
        }
        for one in decision.found
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    panels = [
        _panel(frame, "goodput", "Goodput, Mbit/s: more is better", is_first=True),
        _panel(frame, "delay", "RTT P95, ms: less is better", is_first=False),
    ]
    caption = (
        "Each controller's transfer: measured on the path, or simulated on the model of it. A "
        "point is the median, a line the 95 % interval, with the uncertainty of the model."
    )
    return Figure(
        "advice",
        "Goodput and delay",
        caption,
        beside_each_other(*panels, spacing=24),
        frame,
    )


def _values(name: str, quantity: Quantity | None) -> dict[str, float | None]:
    if quantity is None:
        return dict.fromkeys((name, f"{name}_lo", f"{name}_hi"))
    low, high = quantity.low, quantity.high
    if quantity.is_unbounded:
        low = high = quantity.value
    return {name: quantity.value, f"{name}_lo": low, f"{name}_hi": high}


def _panel(frame: pl.DataFrame, name: str, title: str, *, is_first: bool) -> Compound:
    present = set(frame["role"])
    roles = {str(role): colour for role, colour in _COLOURS.items() if str(role) in present}
    colour = channel(
        "role:N",
        scale={"domain": list(roles), "range": list(roles.values())},
        legend={"title": None, "orient": "bottom"} if is_first else None,
    )
    axis = {"title": None, "ticks": False} if is_first else None
    base = Chart(inline(frame)).encode(
        y=channel("name:N", sort=frame["name"].to_list(), axis=axis), color=colour
    )
    x = channel(f"{name}:Q", title=title, scale={"zero": True}, axis={"tickCount": 5})
    lines = base.mark("rule", strokeWidth=2).encode(
        x=channel(f"{name}_lo:Q", title=title), x2=f"{name}_hi:Q"
    )
    points = base.mark("circle", size=70, opacity=1).encode(x=x)
    width = (theme.WIDTH - 200) // 2
    height = names.row_height(frame["name"], _ROW) * frame.height
    return layered(lines, points).properties(width=width, height=height)
