"""Where the nodes of a radio network are, how busy each is, and what is lost where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from weir.graphics import theme
from weir.graphics.chart import Chart, Compound, Shown, below_each_other, channel, inline, layered
from weir.graphics.figure import Figure
from weir.graphics.select import Case, has_rows, shown_over_time
from weir.results.results import Results

NAME = "topology"

CAUSES = {
    "dropped_mac": "MAC",
    "dropped_queue": "queue",
    "dropped_no_route": "no route",
    "dropped_buffer": "buffer",
    "dropped_arp": "ARP",
    "dropped_ttl": "hops",
    "dropped_error": "error",
}
"""Why nodes drop packets of flows, in a word."""

_MARGIN_M = 90.0
_MOST_HEIGHT = 440
_LEAST_SPAN_M = 380.0
_LABELLED = 60
"""Of more nodes than these nothing is written next to each."""
_BUSY = ("#ffffff", "#fee6ce", "#fdae6b", "#e6550d", "#7f2704")


def topology(results: Results, cases: Sequence[Case]) -> Figure | None:
    """The map of each case's typical run, one below the other; None without radio."""
    if not has_rows(results, "nodes", ("node", "x_m", "airtime_ratio")):
        return None
    shown = shown_over_time(cases)
    nodes = pl.concat([_nodes(results, case) for case in shown])
    if nodes.is_empty():
        return None
    links = pl.concat([_links(results, case, nodes) for case in shown])
    busiest = max(nodes["airtime"]) or 1.0
    most = max(nodes["dropped"])
    panels = [
        _panel(
            nodes.filter(case=case.name),
            links.filter(case=case.name),
            (busiest, most),
            case.name if len(shown) > 1 else "",
        )
        for case in shown
        if case.name in nodes["case"]
    ]
    chart = below_each_other(*panels, spacing=16) if len(panels) > 1 else panels[0]
    lines = (
        " Lines are links over which data frames were received; wider lines had more."
        if links.height
        else " Used links are recorded with measure.frames only."
    )
    caption = (
        "Nodes at their first positions, by number; both axes have the same scale. Colour is the "
        "share of time in which a node sent. Size, and the text below it, are the packets of flows "
        f"that it dropped, by cause. End points of flows have a thick rim.{lines}"
    )
    runs = tuple(case.typical for case in shown)
    return Figure(NAME, "Where load and losses are", caption, chart, nodes, runs)


def _nodes(results: Results, case: Case) -> pl.DataFrame:
    """The nodes of a case's typical run, with what is written next to them."""
    causes = [pl.col(column) for column in CAUSES]
    words = [
        pl.when(pl.col(column) > 0).then(pl.format(f"{word} {{}}", pl.col(column)))
        for column, word in CAUSES.items()
    ]
    rows = results.scan("nodes").filter(run=case.typical).sort("node").collect()
    ends = _ends(results, case)
    return rows.select(
        pl.lit(case.name).alias("case"),
        pl.col("node").cast(pl.Int64),
        "x_m",
        "y_m",
        (pl.col("airtime_ratio") * 100).alias("airtime"),
        pl.sum_horizontal(causes).cast(pl.Int64).alias("dropped"),
        pl.concat_str(words, separator="|", ignore_nulls=True).alias("causes"),
        pl.col("node").cast(pl.Int64).replace_strict(ends, default="").alias("end"),
    )


def _ends(results: Results, case: Case) -> dict[int, str]:
    """What flows a node is an end of."""
    if not has_rows(results, "flows", ("from_node", "to_node")):
        return {}
    flows = results.flows.filter(run=case.typical).drop_nulls("from_node").sort("flow")
    found: dict[int, list[str]] = {}
    for flow, sender, receiver in flows.select("flow", "from_node", "to_node").iter_rows():
        number = f", flow {flow}" if flows.height > 1 else ""
        found.setdefault(sender, []).append(f"sender{number}")
        found.setdefault(receiver, []).append(f"receiver{number}")
    return {node: _shortened(words) for node, words in found.items()}


def _shortened(words: Sequence[str]) -> str:
    return "|".join(words) if len(words) <= 2 else f"ends of {len(words)} flows"


def _links(results: Results, case: Case, nodes: pl.DataFrame) -> pl.DataFrame:
    """Pairs of nodes that carried data: `case`, the two places, `frames`."""
    places = nodes.filter(case=case.name).select(pl.col("node").cast(pl.UInt32), "x_m", "y_m")
    frames = results.scan("frames").filter(run=case.typical).drop_nulls("to")
    carried = frames.filter((pl.col("kind") == "data") & (pl.col("readers") > 0)).select(
        pl.min_horizontal("node", "to").alias("one"), pl.max_horizontal("node", "to").alias("other")
    )
    counted = carried.group_by("one", "other").len("frames").sort("one", "other").collect()
    return (
        counted.join(places, left_on="one", right_on="node")
        .join(places, left_on="other", right_on="node", suffix="_2")
        .select(
            pl.lit(case.name).alias("case"),
            "x_m",
            "y_m",
            "x_m_2",
            "y_m_2",
            pl.col("frames").cast(pl.Int64),
        )
    )


def _panel(
    nodes: pl.DataFrame, links: pl.DataFrame, tops: tuple[float, int], title: str
) -> Compound:
    """One map, as wide as the page unless it would be too high."""
    (left, right), (low, high) = _span(nodes["x_m"]), _span(nodes["y_m"])
    scale = min(theme.WIDTH / (right - left), _MOST_HEIGHT / (high - low))
    width, height = (right - left) * scale, (high - low) * scale
    x = channel(
        "x_m:Q", title="x, m", scale={"domain": [left, right], "nice": False, "zero": False}
    )
    y = channel("y_m:Q", title="y, m", scale={"domain": [low, high], "nice": False, "zero": False})
    base = Chart(inline(nodes)).encode(x=x, y=y)
    layers = [
        _rims(base, tops),
        base.mark("text", fontSize=10).encode(text="node:Q", color=_ink(tops)),
    ]
    if nodes.height <= _LABELLED:
        below = base.mark(
            "text",
            align="left",
            dx=14,
            dy=15,
            baseline="top",
            lineBreak="|",
            fontSize=10,
            color=theme.WARN,
        )
        above = base.mark("text", align="left", dx=14, dy=-13, baseline="bottom", lineBreak="|")
        layers += [_where("causes", below), _where("end", above)]
    if links.height:
        lines = Chart(inline(links)).mark("rule", color=theme.COLD, opacity=0.45)
        ends = lines.encode(x=x, y=y, x2="x_m_2:Q", y2="y_m_2:Q", tooltip=["frames:Q"])
        width_of = channel("frames:Q", scale={"range": [1, 7], "zero": True}, legend=None)
        layers.insert(0, ends.encode(size=width_of))
    chart = layered(*layers).resolve_scale(size="independent")
    named: Compound = chart.properties(title=title) if title else chart
    return named.properties(width=width, height=height)


def _where(column: str, text: Chart) -> Chart:
    """The text of a column at the nodes that have one."""
    shown: Chart = text.encode(text=f"{column}:N").where(f"isValid(datum.{column})")
    return shown


def _span(values: pl.Series) -> tuple[float, float]:
    """Range of an axis: a margin around all values, and a fixed one around a single value."""
    low, high = float(values.min() or 0.0), float(values.max() or 0.0)  # type: ignore[arg-type]
    missing = max(_LEAST_SPAN_M - (high - low), 2 * _MARGIN_M) / 2
    return low - missing, high + missing


def _rims(base: Chart, tops: tuple[float, int]) -> Chart:
    busiest, most = tops
    colour = channel(
        "airtime:Q",
        scale={"domain": [busiest * i / 4 for i in range(5)], "range": list(_BUSY)},
        legend={"title": "time in which it sent, %", "orient": "top", "gradientLength": 200},
    )
    hollow: dict[str, Any] = {
        "symbolFillColor": "white",
        "symbolStrokeColor": theme.INK,
        "symbolStrokeWidth": 1,
    }
    legend = {"title": "packets dropped", "orient": "top", "tickCount": 3, **hollow}
    size = channel(
        "dropped:Q",
        scale={"domain": [0, max(most, 1)], "range": [330, 1100]},
        legend=legend if most else None,
    )
    rim = {"condition": {"test": "isValid(datum.end)", "value": 3}, "value": 1}
    tips: list[Shown] = [
        "node:Q",
        channel("airtime:Q", format=".1f"),
        "dropped:Q",
        "causes:N",
        "end:N",
    ]
    circles = base.mark("circle", stroke=theme.INK, opacity=1)
    rims: Chart = circles.encode(color=colour, size=size, strokeWidth=rim, tooltip=tips)
    return rims


def _ink(tops: tuple[float, int]) -> Any:
    """The colour of a node's number: what can be read on its own."""
    dark = f"datum.airtime > {tops[0] * 0.68}"
    return {"condition": {"test": dark, "value": "#ffffff"}, "value": theme.INK}
