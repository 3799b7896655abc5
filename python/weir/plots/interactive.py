"""What a page needs to draw results over time: every case of the sweep and every repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from weir.graphics import theme
from weir.graphics.explore import Band, Explorer, ExplorerPanel, Line, Shape
from weir.graphics.select import MEAN_SLICES, Case, bottlenecks, has_rows, shown_over_time
from weir.plots.capacity import capacity_steps
from weir.results.results import Results

GROUP = "runs"
"""The figures over time of a report have one range of time and one choice of a repeat."""

MOST_CASES = 100
"""Cases that can be explored."""
_BAND_BINS = 160
_QUEUE = "#8c959f"
_QUEUE_COLUMNS = ("run", "link", "t_s", "packets", "drops", "queue_delay_ms")


def scene(results: Results, cases: Sequence[Case]) -> Scene:
    """The first cases with all their runs, which share one axis of time."""
    explored = cases[:MOST_CASES]
    runs = [run for case in explored for run in case.runs]
    ends = results.runs.filter(pl.col("run").is_in(runs))["sim_s"]
    return Scene(results, explored, max((float(e) for e in ends if e is not None), default=1.0))


def goodput(scene: Scene) -> Explorer | None:
    """Goodput of each flow against the capacity of the bottleneck."""
    found, levels = scene.flows(pl.col("goodput_mbps"), is_rate=True), {}
    capacities = dict(bottlenecks(scene.results).select("run", "capacity_mbps").iter_rows())
    for case in scene.cases:
        mean = capacities.get(case.typical)
        if mean is None:
            continue
        steps, name = capacity_steps(case.scenario, mean)
        if len(steps) == 1:
            levels[case.label] = {"levels": [(mean, name)]}
        elif case.label in found.lines:
            t_s, level = zip(*steps, (scene.end_s, steps[-1][1]), strict=True)
            path = (pl.Series(t_s, dtype=pl.Float64), pl.Series(level, dtype=pl.Float64))
            found.add(case.label, Line(name, theme.INK, *path, "step", width=1, dash=(5, 3)))
    return scene.explorer(found, "goodput, Mbit/s", levels)


def windows(scene: Scene) -> Explorer | None:
    """Congestion window and slow-start threshold."""
    cwnd = pl.col("cwnd_bytes")
    found = scene.flows(pl.when(cwnd > 0).then(cwnd / 1000))
    scene.thresholds(found)
    return scene.explorer(found, "cwnd, kB")


def delays(scene: Scene) -> Explorer | None:
    """Round-trip time, and the part of it that is waiting in the queue."""
    found = scene.flows(pl.col("rtt_ms"))
    scene.waits(found)
    return scene.explorer(found, "RTT and queue, ms")


def queues(scene: Scene) -> Explorer | None:
    """Packets in the bottleneck queue, and when it dropped some."""
    return scene.explorer(scene.queues(), "queue, packets")


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines and bands of the panels of one figure, by the labels of their cases."""

    lines: dict[str, list[Line]] = field(default_factory=dict)
    bands: dict[str, list[Band]] = field(default_factory=dict)

    def add(self, label: str, *lines: Line, first: bool = False) -> None:
        """Adds lines to a panel, uppermost or `first`."""
        own = self.lines.setdefault(label, [])
        own[:] = [*lines, *own] if first else [*own, *lines]


@dataclass(frozen=True, eq=False)
class Scene:
    """The runs that can be explored: all of the first cases."""

    results: Results
    cases: Sequence[Case]
    end_s: float

    def explorer(
        self, found: Lines, y: str, extras: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Explorer | None:
        """A panel per case that has lines; `extras` are further fields of each.

        A sweep of many cases starts with the one point that a picture shows.
        """
        shown = shown_over_time(self.cases)
        panels = [
            ExplorerPanel(
                case.series,
                y,
                found.lines[case.label],
                point=_point(case),
                typical=self.repeats[case.typical],
                bands=found.bands.get(case.label, ()),
                **(extras or {}).get(case.label, {}),
            )
            for case in self.cases
            if found.lines.get(case.label)
        ]
        if not panels:
            return None
        is_all = len(shown) == len(self.cases) or not shown[0].point
        seeds = dict(self.results.runs.select("repeat", "seed").iter_rows())
        first = None if is_all else _point(shown[0])
        return Explorer(panels, self.end_s, GROUP, shown=first, seeds=seeds)

    def flows(self, value: pl.Expr, *, is_rate: bool = False) -> Lines:
        """A line per flow and repeat; where there is one flow, with the range over all repeats."""
        rows = self._rows("samples", "flow", value=value)
        parts = rows.drop("label").partition_by("run", "flow", as_dict=True, include_key=False)
        shape: Shape = "mean" if is_rate else "line"
        found = Lines()
        for case in self.cases:
            flows = self._flows.get(case.typical, ())
            names, stacks = [name for _, name, _ in flows], [stack for *_, stack in flows]
            colours = theme.flow_colours(names, stacks, case.colour)
            if len(flows) == 1:
                colours = {names[0]: case.colour}
            own = [
                Line(name, colours[name], part["t_s"], part["value"], shape, repeat=repeat)
                for run, repeat in self._runs_of(case)
                for flow, name, _ in flows
                if (part := parts.get((run, flow))) is not None
            ]
            found.add(case.label, *own)
        found.bands.update(self._bands(rows, is_rate=is_rate))
        return found

    def thresholds(self, found: Lines) -> None:
        """Adds the slow-start threshold, where there is one flow."""
        rows = self._rows("samples", "flow", value=pl.col("ssthresh_bytes") / 1000)
        parts = rows.partition_by("run", as_dict=True)
        for case in self.cases:
            if len(self._flows.get(case.typical, ())) == 1:
                found.add(
                    case.label,
                    *(
                        Line(
                            "ssthresh",
                            theme.INK,
                            part["t_s"],
                            part["value"],
                            "step",
                            width=1,
                            dash=(3, 2),
                            repeat=repeat,
                        )
                        for run, repeat in self._runs_of(case)
                        if (part := parts.get((run,))) is not None
                    ),
                )

    def waits(self, found: Lines) -> None:
        """Adds the time in the queue of the bottleneck, below all lines."""
        for case, repeat, part in self._queue_parts():
            if case.label in found.lines:
                area = Line(
                    "in queue",
                    _QUEUE,
                    part["t_s"],
                    part["queue_delay_ms"],
                    "area",
                    repeat=repeat,
                )
                found.add(case.label, area, first=True)

    def queues(self) -> Lines:
        """Packets in the queue of the bottleneck, and when it dropped some."""
        found = Lines()
        for case, repeat, part in self._queue_parts():
            drops = part["drops"].cast(pl.Int64).diff().fill_null(part["drops"][0])
            found.add(
                case.label,
                Line("packets", case.colour, part["t_s"], part["packets"], "area", repeat=repeat),
                Line("drops", theme.WARN, part["t_s"], drops, "ticks", repeat=repeat),
            )
        return found

    def ranges(self, rows: pl.DataFrame) -> dict[str, list[Band]]:
        """The range of `value` over the repeats of each case; `rows` has `label` and `t_s`."""
        if rows.is_empty():
            return {}
        width = self.end_s / _BAND_BINS
        middle = ((pl.col("t_s") / width).floor() + 0.5) * width
        spread = (
            rows.group_by("label", middle.clip(0.0, self.end_s).alias("t_s"))
            .agg(pl.col("value").min().alias("lo"), pl.col("value").max().alias("hi"))
            .sort("t_s")
            .partition_by("label", as_dict=True)
        )
        return {
            case.label: [Band(case.colour, part["t_s"], part["lo"], part["hi"])]
            for case in self.cases
            if len(case.runs) > 1 and (part := spread.get((case.label,))) is not None
        }

    def _bands(self, rows: pl.DataFrame, *, is_rate: bool) -> dict[str, list[Band]]:
        single = [run for run, flows in self._flows.items() if len(flows) == 1]
        rows = rows.filter(pl.col("run").is_in(single))
        if is_rate and not rows.is_empty():
            width = self.end_s / MEAN_SLICES
            middle = ((pl.col("t_s") / width).floor() + 0.5) * width
            rows = rows.group_by("label", "run", middle.alias("t_s")).agg(pl.col("value").mean())
        return self.ranges(rows)

    def _rows(self, table: str, *keys: str, value: pl.Expr) -> pl.DataFrame:
        """`label`, `run`, the keys, `t_s` and `value`, where there is one, in the order of time."""
        rows = self.results.scan(table).select("run", *keys, "t_s", value.alias("value"))
        present = rows.filter(pl.col("value").is_finite()).collect()
        labels = pl.DataFrame(
            [(run, case.label) for case in self.cases for run in case.runs],
            {"run": present.schema["run"], "label": pl.String},
            orient="row",
        )
        return present.join(labels, on="run").sort("run", *keys, "t_s")

    def _queue_parts(self) -> list[tuple[Case, int, pl.DataFrame]]:
        """Each case and repeat with the rows of its bottleneck's queue."""
        parts = self._queues
        return [
            (case, repeat, part)
            for case in self.cases
            for run, repeat in self._runs_of(case)
            if (part := parts.get((run,))) is not None
        ]

    @cached_property
    def _queues(self) -> dict[Any, pl.DataFrame]:
        if not has_rows(self.results, "queues", _QUEUE_COLUMNS):
            return {}
        rows = self.results.scan("queues").select(_QUEUE_COLUMNS).collect()
        first = bottlenecks(self.results).select("run", "link")
        if not first.is_empty():
            rows = rows.join(
                first.cast({k: rows.schema[k] for k in first.columns}), on=["run", "link"]
            )
        return rows.sort("run", "t_s").partition_by("run", as_dict=True)

    @cached_property
    def _flows(self) -> dict[int, list[tuple[int, str, str]]]:
        """The flows of each run: number, name, stack."""
        found: dict[int, list[tuple[int, str, str]]] = {}
        columns = self.results.flows.select("run", "flow", "name", "stack").sort("run", "flow")
        for run, *flow in columns.iter_rows():
            found.setdefault(run, []).append((flow[0], flow[1], flow[2]))
        return found

    @cached_property
    def repeats(self) -> dict[int, int]:
        """The repeat of each run."""
        return dict(self.results.runs.select("run", "repeat").iter_rows())

    def _runs_of(self, case: Case) -> list[tuple[int, int]]:
        return [(run, self.repeats[run]) for run in case.runs]


def _point(case: Case) -> dict[str, str]:
    return {theme.short_key(key): value for key, value in case.point.items()}
