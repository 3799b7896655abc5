"""One picture per connection: time-sequence diagram, limits, RTT, bytes in flight, goodput."""

from __future__ import annotations

import polars as pl

from weir.graphics import encode, theme
from weir.graphics.chart import Chart, Compound, Spec, below_each_other, channel, inline, layered
from weir.plots import Figure
from weir.reading import LIMITS

_HEIGHT, _HIGH, _LOW = 110, 260, 22
_WIDTH = theme.WIDTH - 150

_COLOURS = dict(
    zip(
        LIMITS,
        (
            "#9aa5b1",
            "#56b4e9",
            "#6e4b2a",
            "#009e73",
            "#d55e00",
            "#cc79a7",
            "#a40e26",
            "#0072b2",
            "#444444",
            "#eaeef2",
        ),
        strict=True,
    )
)
"""The colour of each limit; what needs no attention is grey."""

_MARKS = {
    "data": ("sent", theme.COLD),
    "ack": ("acknowledged", "#009e73"),
    "fast": ("fast retransmission", theme.WARM),
    "timeout": ("timeout", theme.WARN),
    "tail-probe": ("tail loss probe", "#cc79a7"),
}


def connection_figure(
    number: int, title: str, slices: pl.DataFrame, points: pl.DataFrame
) -> Figure:
    """The picture of one connection, from its slices and points."""
    end = float(slices["end_s"].max() or 0.0)  # type: ignore[arg-type]
    zoom = {
        "name": f"zoom{number}",
        "select": {"type": "interval", "encodings": ["x"]},
        "bind": "scales",
    }
    panels = [
        _sequence(points, end, zoom),
        _band(slices, end),
        _range(slices, end, "RTT", "ms", ("rtt_ms_min", "rtt_ms_max")),
        _flight(slices, end),
        _lines(slices, end, "Rate", "Mbit/s", {"goodput_mbps": "goodput", "sent_mbps": "sent"}),
    ]
    chart = below_each_other(*panels, spacing=10).resolve_scale(x="shared", color="independent")
    caption = (
        "Top: bytes sent and acknowledged over time. The coloured band has the limit that took "
        "most of each slice. RTT: least to largest of each slice. A receiver's window beyond the "
        "axis is cut off. Drag and turn the wheel on the "
        "top panel to zoom."
    )
    return Figure(f"connection-{number}", title, caption, chart, slices)


def _sequence(points: pl.DataFrame, end: float, zoom: Spec) -> Compound:
    names = pl.DataFrame(
        {"kind": list(_MARKS), "what": [name for name, _ in _MARKS.values()]},
        {"kind": pl.String, "what": pl.String},
    )
    frame = points.join(names, on="kind").select(
        "t_s",
        "what",
        (pl.col("start_bytes") / 1e6).alias("from"),
        (pl.col("end_bytes") / 1e6).alias("mb"),
    )
    scale = {
        "domain": [name for name, _ in _MARKS.values()],
        "range": [colour for _, colour in _MARKS.values()],
    }
    legend = {"title": None, "orient": "right"}
    colour = channel("what:N", scale=scale, legend=legend)
    base = Chart(inline(frame)).encode(x=encode.time(end, is_last=False))
    y = channel("mb:Q", title="MB")
    all_points = base.mark("circle", size=9, opacity=0.8, clip=True).encode(y=y, color=colour)
    again = base.where("datum.what != 'sent' && datum.what != 'acknowledged'")
    marks = again.mark("point", size=36, filled=True, clip=True).encode(y=y, color=colour)
    return layered(all_points.properties(params=[zoom]), marks).properties(
        title="Time and sequence", width=_WIDTH, height=_HIGH
    )


def _band(slices: pl.DataFrame, end: float) -> Compound:
    """Neighbouring slices of one limit are one rectangle."""
    merged = (
        slices.with_columns(part=pl.col("limit").rle_id())
        .group_by("part", maintain_order=True)
        .agg(pl.col("t_s").first(), pl.col("end_s").last(), pl.col("limit").first())
    )
    present = [name for name in LIMITS if name in set(merged["limit"])]
    scale = {"domain": present, "range": [_COLOURS[name] for name in present]}
    legend = {"title": None, "orient": "right", "symbolType": "square"}
    rectangles = (
        Chart(inline(merged))
        .mark("rect", clip=True)
        .encode(
            x=encode.time(end, is_last=False),
            x2="end_s:Q",
            color=channel("limit:N", scale=scale, legend=legend),
            tooltip=["limit:N", "t_s:Q", "end_s:Q"],
        )
    )
    return layered(rectangles).properties(title="Limited by", width=_WIDTH, height=_LOW)


def _range(
    slices: pl.DataFrame, end: float, title: str, unit: str, columns: tuple[str, str]
) -> Compound:
    low, high = columns
    frame = slices.select("t_s", low, high).drop_nulls()
    base = Chart(inline(frame)).encode(x=encode.time(end, is_last=False))
    y = channel(f"{low}:Q", title=unit, scale={"zero": True}, axis={"tickCount": 4})
    area = base.mark("area", opacity=0.35, color=theme.COLD, clip=True)
    line = base.mark("line", color=theme.COLD, strokeWidth=1.2, clip=True)
    return layered(area.encode(y=y, y2=f"{high}:Q"), line.encode(y=y)).properties(
        title=title, width=_WIDTH, height=_HEIGHT
    )


def _flight(slices: pl.DataFrame, end: float) -> Compound:
    """With the congestion window of a log, and the receiver's unless it hides the flight."""
    frame = slices.with_columns(
        (pl.col("flight_bytes_max") / 1e3).alias("flight"),
        (pl.col("window_bytes_min") / 1e3).alias("window"),
        (pl.col("cwnd_bytes_max") / 1e3).alias("cwnd"),
    )
    columns = {"flight": "in flight"}
    if frame["cwnd"].is_not_null().any():
        columns["cwnd"] = "congestion window"
    largest = (frame[name].max() for name in columns)
    # A receiver's window is often so large that nothing else would be seen.
    top = _SPACE * max((value for value in largest if isinstance(value, float)), default=0.0)
    window = frame["window"].min()
    is_shown = isinstance(window, float) and window < top
    if is_shown:
        columns["window"] = "receiver's window"
    return _lines(frame, end, "In flight", "kB", columns, top=top if is_shown else None)


def _lines(
    slices: pl.DataFrame,
    end: float,
    title: str,
    unit: str,
    columns: dict[str, str],
    *,
    top: float | None = None,
) -> Compound:
    frame = slices.select("t_s", *columns).unpivot(index="t_s", variable_name="name")
    words = pl.DataFrame({"name": list(columns), "what": list(columns.values())})
    frame = frame.drop_nulls().join(words, on="name").select("t_s", "what", "value")
    is_last = title == "Rate"
    height = {} if top is None else {"domain": [0, top], "nice": True}
    scale = {"domain": list(columns.values()), "range": _LINES[: len(columns)]}
    legend = {"title": None, "orient": "right", "symbolType": "stroke"}
    line = (
        Chart(inline(frame))
        .mark("line", strokeWidth=1.3, clip=True)
        .encode(
            x=encode.time(end, is_last=is_last),
            y=channel("value:Q", title=unit, axis={"tickCount": 4}, scale=height),
            color=channel("what:N", scale=scale, legend=legend),
        )
    )
    return layered(line).properties(title=title, width=_WIDTH, height=_HEIGHT)


_LINES = [theme.COLD, theme.WARM, "#009e73"]
_SPACE = 1.5
"""The axis of what is in flight ends at this multiple of the most; a larger window is cut off."""
