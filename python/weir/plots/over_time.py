"""What happened over time: goodput, windows, round-trip times and queues, one panel per case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from weir._native import stack_parts
from weir.graphics import encode, theme
from weir.graphics.chart import Chart, Compound, Spec, below_each_other, channel, inline, layered
from weir.graphics.figure import Figure
from weir.graphics.select import Case, averaged, band, bottlenecks, has_rows, line, shown_over_time
from weir.plots.capacity import capacity_line
from weir.results.results import Results

HEIGHT = 110
_TICKS = 4
_MAX_IN_LEGEND = 10
_SIGNATURES = {
    "reno": "a sawtooth for Reno's additive increase",
    "cubic": "a curve that flattens for CUBIC",
    "bbr": "a near-constant level for BBR",
}

Draw = Callable[[Case, Spec, pl.DataFrame], Compound]
"""Draws a case over an axis of time from its rows."""


@dataclass(frozen=True)
class _Quantity:
    """A column of the samples as a line. A rate is averaged over slices of time."""

    column: str
    title: str
    is_rate: bool = False

    def prepared(self, samples: pl.DataFrame) -> pl.DataFrame:
        """The samples that have a value."""
        present = samples.filter(pl.col(self.column).is_not_null())
        keys = ("run", "flow", "name", "stack")
        return averaged(present, self.column, keys) if self.is_rate else present


_GOODPUT = _Quantity("goodput_mbps", "goodput, Mbit/s", is_rate=True)
_CWND = _Quantity("cwnd_kb", "cwnd, kB")
_RTT = _Quantity("rtt_ms", "RTT and queue, ms")


def goodput(results: Results, cases: Sequence[Case]) -> Figure | None:
    """Goodput of each flow against the capacity of the bottleneck."""
    if not has_rows(results, "samples", ("run", "flow", "t_s", "goodput_mbps")):
        return None
    capacities = dict(bottlenecks(results).select("run", "capacity_mbps").iter_rows())
    for case in cases:
        if case.is_uniform:  # the flows of one line cross many links
            capacities[case.typical] = None
    shown = _with_values(results, cases, pl.col("goodput_mbps").is_finite())
    end_s = times_end(results, shown)

    def draw(case: Case, time: Spec, data: pl.DataFrame) -> Compound:
        layers = _flow_lines(results, case, time, _GOODPUT, data)
        capacity = capacity_line(case.scenario, capacities.get(case.typical), time, end_s)
        return layered(*layers, *capacity)

    known = any(capacities.get(case.typical) is not None for case in shown)
    capacity = "the dashed capacity" if known else "its goodput"
    many = results.flows["flow"].n_unique() > 1
    meet = ", and, where flows share the link, whether their lines meet" if many else ""
    caption = (
        f"How fast each flow reaches {capacity}, and whether it stays there{meet}. A dip followed "
        "by a peak is a loss: data behind it is delivered when it is repaired. "
        f"{_reading(results, shown)}"
    )
    rows = [_flow_rows(results, case, _GOODPUT) for case in shown]
    return stacked("goodput", "Goodput over time", caption, results, shown, rows, draw)


def windows(results: Results, cases: Sequence[Case]) -> Figure | None:
    """Congestion window and slow-start threshold."""
    if not has_rows(results, "samples", ("run", "flow", "t_s", "cwnd_bytes", "ssthresh_bytes")):
        return None
    shown = _with_values(results, cases, pl.col("cwnd_bytes") > 0)

    def draw(case: Case, time: Spec, data: pl.DataFrame) -> Compound:
        layers = _flow_lines(results, case, time, _CWND, data)
        thresholds = _samples(results, (case.typical,)).filter(pl.col("ssthresh_kb").is_not_null())
        if data["flow"].n_unique() == 1 and not thresholds.is_empty():
            steps = line(thresholds.select("t_s", "ssthresh_kb"), "ssthresh_kb")
            layers.append(
                Chart(inline(steps))
                .mark(
                    "line",
                    color=theme.INK,
                    strokeWidth=1,
                    strokeDash=[3, 2],
                    interpolate="step-after",
                )
                .encode(x=time, y="ssthresh_kb:Q")
            )
        return layered(*layers)

    single = results.flows["flow"].n_unique() == 1
    threshold = " The dashed line is ssthresh, which follows each loss." if single else ""
    caption = (
        f"The shape shows the algorithm{_signatures(shown)}.{threshold} {_reading(results, shown)}"
    )
    title = "Congestion window over time"
    rows = [_flow_rows(results, case, _CWND) for case in shown]
    return stacked("cwnd", title, caption, results, shown, rows, draw)


def delays(results: Results, cases: Sequence[Case]) -> Figure | None:
    """Round-trip time, and the part of it that is waiting in the queue."""
    if not has_rows(results, "samples", ("run", "flow", "t_s", "rtt_ms")):
        return None
    shown = _with_values(results, cases, pl.col("rtt_ms").is_finite())
    links = dict(bottlenecks(results).select("run", "link").iter_rows())

    def draw(case: Case, time: Spec, data: pl.DataFrame) -> Compound:
        layers = _flow_lines(results, case, time, _RTT, data)
        waiting = _queue(results, case.typical, links.get(case.typical))
        if not waiting.is_empty():
            base = Chart(inline(line(waiting, "queue_delay_ms"))).encode(x=time)
            area = base.mark("area", color="#8c959f", opacity=0.55, interpolate="linear")
            layers.insert(0, area.encode(y="queue_delay_ms:Q"))
        return layered(*layers)

    caption = (
        f"The line is the round-trip time that the sender measured. {_reading(results, shown)}"
    )
    if any(not _queue(results, c.typical, links.get(c.typical)).is_empty() for c in shown):
        caption = (
            "The grey area is the time spent waiting in the bottleneck queue, the line the "
            "round-trip time that the sender measured: what lies between them is the path itself. "
            f"{_reading(results, shown)}"
        )
    title = "Round-trip time and queueing delay"
    rows = [_flow_rows(results, case, _RTT) for case in shown]
    return stacked("rtt", title, caption, results, shown, rows, draw)


def queues(results: Results, cases: Sequence[Case]) -> Figure | None:
    """Packets in the bottleneck queue, and when it overflowed."""
    if not has_rows(results, "queues", ("run", "link", "t_s", "packets", "drops")):
        return None
    shown = shown_over_time(cases)
    links = dict(bottlenecks(results).select("run", "link").iter_rows())

    def draw(case: Case, time: Spec, data: pl.DataFrame) -> Compound:
        waiting = _queue(results, case.typical, links.get(case.typical))
        lost = waiting.filter(pl.col("drops").diff().fill_null(pl.col("drops")) > 0)
        base = Chart(inline(data)).encode(x=time)
        area = base.mark(
            "area",
            color=case.colour,
            opacity=0.35,
            line={"color": case.colour, "strokeWidth": 1, "strokeJoin": "round"},
        )
        layers = [
            area.encode(y=channel("packets:Q", title="queue, packets", axis={"tickCount": _TICKS}))
        ]
        if not lost.is_empty():
            ticks = Chart(inline(lost.select("t_s"))).mark(
                "tick", color=theme.WARN, thickness=1.5, size=9, orient="vertical"
            )
            layers.append(ticks.encode(x=time, y={"value": HEIGHT + 1}))
        return layered(*layers)

    waits = [_queue(results, case.typical, links.get(case.typical)) for case in shown]
    has_drops = any(waiting["drops"].max() for waiting in waits if not waiting.is_empty())
    ticks = "; each red tick marks a sample in which packets were dropped" if has_drops else ""
    typical = " Shown is the run with the median goodput." if _are_repeated(shown) else ""
    caption = (
        "A queue that never empties costs delay without adding goodput, one that is often empty "
        f"costs goodput{ticks}.{typical}"
    )
    title = "Queue at the bottleneck over time"
    rows = [line(waiting, "packets") for waiting in waits]
    return stacked("queue", title, caption, results, shown, rows, draw)


def stacked(
    name: str,
    title: str,
    caption: str,
    results: Results,
    shown: Sequence[Case],
    rows: Sequence[pl.DataFrame],
    draw: Draw,
) -> Figure | None:
    """One panel per case, below each other over one axis of time; None if there is no case.

    `rows` has the rows of each case, which `draw` turns into a chart when a picture is needed.
    """
    if not shown:
        return None

    def chart() -> Compound:
        end = times_end(results, shown)
        panels = []
        for case, data in zip(shown, rows, strict=True):
            time = encode.time(end, is_last=case is shown[-1])
            panel = draw(case, time, data)
            panels.append(panel.properties(width=theme.WIDTH, height=HEIGHT, title=case.name))
        return below_each_other(*panels, spacing=12).resolve_scale(
            x="shared", y="shared", color="independent"
        )

    runs = tuple(run for case in shown for run in case.runs)
    frames = [
        data.with_columns(case=pl.lit(case.name)) for case, data in zip(shown, rows, strict=True)
    ]
    return Figure(name, title, caption, chart, pl.concat(frames, how="diagonal"), runs)


def _with_values(results: Results, cases: Sequence[Case], is_value: pl.Expr) -> list[Case]:
    """The cases to show whose typical run has any value: `udp` has no RTT, `none` no window."""
    shown = shown_over_time(cases)
    runs = [case.typical for case in shown]
    rows = results.scan("samples").filter(pl.col("run").is_in(runs) & is_value)
    present = set(rows.select(pl.col("run").unique()).collect()["run"])
    return [case for case in shown if case.typical in present]


def times_end(results: Results, shown: Sequence[Case]) -> float:
    """Where the axis of time ends: with the longest run."""
    runs = [run for case in shown for run in case.runs]
    ends = results.runs.filter(pl.col("run").is_in(runs))["sim_s"]
    return max((float(end) for end in ends if end is not None), default=1.0)


def _flow_rows(results: Results, case: Case, quantity: _Quantity) -> pl.DataFrame:
    """The lines of the typical run's flows."""
    rows = quantity.prepared(_samples(results, (case.typical,)))
    thin = rows.select("flow", "name", "stack", "t_s", quantity.column)
    return line(thin, quantity.column, ("flow", "name"))


def _flow_lines(
    results: Results, case: Case, time: Spec, quantity: _Quantity, data: pl.DataFrame
) -> list[Chart]:
    """The lines of the typical run's flows, over the range of all runs if there is one flow."""
    value, title = quantity.column, quantity.title
    ticks = {"tickCount": _TICKS}
    axis = channel(f"{value}:Q", title=title, axis=ticks)
    layers = []
    flows = data.select("flow", "name", "stack").unique().sort("flow")
    if flows.height == 1 and len(case.runs) > 1:
        spread = band(quantity.prepared(_samples(results, case.runs)), value)
        area = Chart(inline(spread)).mark("area", color=case.colour, opacity=0.18)
        layers.append(area.encode(x=time, y=channel("lo:Q", title=title, axis=ticks), y2="hi:Q"))
    mark = Chart(inline(data.drop("stack"))).mark(
        "line", strokeWidth=1.3, strokeJoin="round", clip=True
    )
    layers.append(mark.encode(x=time, y=axis, color=_flow_colour(flows, case), detail="flow:N"))
    return layers


def _flow_colour(flows: pl.DataFrame, case: Case) -> Spec:
    """One colour for one flow; a colour per stack, or a tint per flow of one stack, for several."""
    if flows.height <= 1:
        return {"value": case.colour}
    colours = theme.flow_colours(flows["name"].to_list(), flows["stack"].to_list(), case.colour)
    legend = {"title": "flow"} if flows.height <= _MAX_IN_LEGEND else None
    scale = {"domain": list(colours), "range": list(colours.values())}
    return channel("name:N", scale=scale, legend=legend)


def _samples(results: Results, runs: Sequence[int]) -> pl.DataFrame:
    names = results.flows.select("run", "flow", "name", "stack")
    rows = results.scan("samples").filter(pl.col("run").is_in(list(runs))).collect()
    kilobytes = [
        (pl.col(f"{name}_bytes") / 1000).alias(f"{name}_kb")
        for name in ("cwnd", "ssthresh")
        if f"{name}_bytes" in rows.columns
    ]
    return rows.with_columns(kilobytes).join(names, on=["run", "flow"], how="left")


def _queue(results: Results, run: int, link: int | None) -> pl.DataFrame:
    columns = ("run", "link", "t_s", "packets", "drops", "queue_delay_ms")
    if not has_rows(results, "queues", columns):
        return pl.DataFrame()
    rows = results.scan("queues").filter(pl.col("run") == run).select(columns).collect()
    return rows if link is None else rows.filter(pl.col("link") == link)


def _signatures(shown: Sequence[Case]) -> str:
    """What to expect of those stacks whose windows have a shape of their own."""
    known = [
        text
        for name, text in _SIGNATURES.items()
        if any(name in (stack_parts(stack)[3] or "") for case in shown for stack in case.stacks)
    ]
    return f": {', '.join(known)}" if known else ""


def _are_repeated(shown: Sequence[Case]) -> bool:
    return any(len(case.runs) > 1 for case in shown)


def _reading(results: Results, shown: Sequence[Case]) -> str:
    has_band = _are_repeated(shown)
    if results.flows["flow"].n_unique() == 1 and has_band:
        return "Line: the run with the median goodput; shade: the range over all repeats."
    return "Shown is the run with the median goodput." if has_band else ""
