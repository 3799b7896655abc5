"""Quantities of several flows over one axis of time, panel below panel, with marked moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from weir.graphics import encode, theme
from weir.graphics.chart import Chart, Compound, Spec, below_each_other, channel, inline, layered
from weir.graphics.explore import Band, Explorer, ExplorerPanel, Line
from weir.graphics.figure import Figure

_HEIGHT = 130
_TICKS = 4
_MARGIN = 1.12
_FLOWS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
"""Flows of one algorithm, in the order of their starts; the book draws the first two alike."""


@dataclass(frozen=True)
class TimePanel:
    """One quantity: `data` has `series`, `t_s`, `value`, and `lo` and `hi` where repeats differ."""

    title: str
    y: str
    data: pl.DataFrame
    level: tuple[float, str] | None = None
    """A horizontal line and its name, as the capacity of the link."""


def timeline(
    name: str,
    title: str,
    caption: str,
    panels: Sequence[TimePanel],
    moments: Sequence[tuple[float, str]] = (),
    runs: Sequence[int] = (),
) -> Figure:
    """The panels below each other; each of `moments` is a vertical line, named in the first."""
    series = list(dict.fromkeys(s for panel in panels for s in panel.data["series"]))
    colours = dict(zip(series, _FLOWS, strict=False)) if len(series) <= len(_FLOWS) else {}
    colours = colours or theme.stack_colours(series)
    end = max(float(panel.data["t_s"].max() or 0.0) for panel in panels)  # type: ignore[arg-type]

    def chart() -> Compound:
        charts = [
            _panel(
                panel,
                colours,
                moments,
                end,
                is_first=panel is panels[0],
                is_last=panel is panels[-1],
            )
            for panel in panels
        ]
        stacked = below_each_other(*charts, spacing=14)
        linked: Compound = stacked.resolve_scale(x="shared", color="shared")
        return linked

    def explorer() -> Explorer:
        found = [_explored(panel, colours, moments) for panel in panels]
        is_shared = len({panel.y for panel in panels}) == 1
        return Explorer(found, end, name, is_y_shared=is_shared)

    frames = [panel.data.with_columns(panel=pl.lit(panel.title)) for panel in panels]
    data = pl.concat(frames, how="diagonal")
    return Figure(name, title, caption, chart, data, tuple(runs), explorer=explorer)


def _explored(
    panel: TimePanel, colours: Mapping[str, str], moments: Sequence[tuple[float, str]]
) -> ExplorerPanel:
    parts = {
        str(series): part.sort("t_s", maintain_order=True)
        for (series,), part in panel.data.group_by("series", maintain_order=True)
    }
    bands = []
    if {"lo", "hi"} <= set(panel.data.columns):
        for series, part in parts.items():
            known = part.drop_nulls(["lo", "hi"])
            bands.append(Band(colours[series], known["t_s"], known["lo"], known["hi"]))
    return ExplorerPanel(
        panel.title,
        panel.y,
        [_line(name, colours[name], part) for name, part in parts.items()],
        bands=bands,
        levels=[] if panel.level is None else [panel.level],
        moments=moments,
    )


def _line(name: str, colour: str, part: pl.DataFrame) -> Line:
    """A series; one with two values at an instant is a staircase, and the last one counts."""
    if part["t_s"].n_unique() == part.height:
        return Line(name, colour, part["t_s"], part["value"])
    steps = part.unique("t_s", keep="last", maintain_order=True)
    return Line(name, colour, steps["t_s"], steps["value"], "step")


def _panel(
    panel: TimePanel,
    colours: Mapping[str, str],
    moments: Sequence[tuple[float, str]],
    end: float,
    *,
    is_first: bool,
    is_last: bool,
) -> Compound:
    time = encode.time(end, is_last=is_last)
    scale = {"domain": list(colours), "range": list(colours.values())}
    legend = {"title": None, "orient": "right", "symbolType": "stroke", "symbolOpacity": 1}
    colour = channel("series:N", scale=scale, legend=legend)
    ticks = {"tickCount": _TICKS}
    # An interval of two or three repeats may be far wider than all there is to see.
    highest = float(panel.data["value"].max() or 0.0) * _MARGIN  # type: ignore[arg-type]
    y_scale = {"domain": [0, highest]} if highest > 0 else {"zero": True}
    y = channel("value:Q", title=panel.y, axis=ticks, scale=y_scale)
    base = Chart(inline(panel.data))
    layers = [
        base.mark("line", strokeWidth=1.4, strokeJoin="round").encode(x=time, y=y, color=colour)
    ]
    if {"lo", "hi"} <= set(panel.data.columns):
        spread = base.mark("area", opacity=0.2, clip=True)
        layers.insert(
            0,
            spread.encode(x=time, y=channel("lo:Q", title=panel.y), y2="hi:Q", color=colour),
        )
    layers += _marks(moments, time, has_names=is_first)
    if panel.level is not None:
        layers += _level(*panel.level)
    return layered(*layers).properties(title=panel.title, width=theme.WIDTH - 90, height=_HEIGHT)


def _marks(moments: Sequence[tuple[float, str]], time: Spec, *, has_names: bool) -> list[Chart]:
    if not moments:
        return []
    frame = pl.DataFrame(moments, ["t_s", "text"], orient="row")
    base = Chart(inline(frame)).encode(x=time)
    rules = base.mark("rule", color=theme.SOFT, strokeDash=[2, 3], strokeWidth=1)
    if not has_names:
        return [rules]
    names = base.mark("text", align="left", baseline="top", dx=3, dy=-_HEIGHT // 2 - 1, fontSize=10)
    return [rules, names.encode(y={"value": _HEIGHT // 2 + 2}, text="text:N")]


def _level(height: float, name: str) -> list[Chart]:
    base = Chart(inline(pl.DataFrame({"level": [height], "text": [name]})))
    y = channel("level:Q")
    rule = base.mark("rule", color=theme.INK, strokeDash=[5, 3], strokeWidth=1).encode(y=y)
    text = base.mark("text", align="right", baseline="bottom", dy=-2, fontSize=10)
    return [rule, text.encode(x={"value": theme.WIDTH - 92}, y=y, text="text:N")]
