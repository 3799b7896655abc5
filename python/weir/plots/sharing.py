"""How fairly flows share, second by second, and what happened when one came or went."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weir.dynamics.criteria import COARSE_BIN_S
from weir.graphics import theme
from weir.graphics.chart import Chart, Compound, Spec, channel, inline, layered
from weir.graphics.explore import Explorer, Line
from weir.graphics.figure import Figure
from weir.graphics.select import Case, band, has_rows, line, shown_over_time
from weir.plots.interactive import Lines, Scene
from weir.plots.over_time import HEIGHT, stacked, times_end
from weir.results.results import Results

NAME = "jain"


def fairness(results: Results, cases: Sequence[Case]) -> Figure | None:
    """Jain's index over time, with every coming and going and the median time of convergence."""
    if not has_rows(results, "samples", ("run", "flow", "t_s", "goodput_mbps")):
        return None
    shared = [c for c in shown_over_time(cases) if not results.shared_runs.isdisjoint(c.runs)]
    indices = {case.label: _indices(results, case) for case in shared}
    shown = [case for case in shared if not indices[case.label].is_empty()]
    if not shown:
        return None
    most = max(len(results.curves[case.typical]) for case in shown)
    scale = {"domain": [1 / most, 1], "nice": False}
    end_s = times_end(results, shown)

    def draw(case: Case, time: Spec, data: pl.DataFrame) -> Compound:
        y = channel("jain_index:Q", title="Jain index", scale=scale, axis={"tickCount": 5})
        mark = Chart(inline(data)).mark("line", color=case.colour, strokeWidth=1.5)
        layers = [mark.encode(x=time, y=y)]
        if len(case.runs) > 1:
            area = Chart(inline(band(indices[case.label], "jain_index")))
            area = area.mark("area", color=case.colour, opacity=0.18)
            layers.insert(0, area.encode(x=time, y=channel("lo:Q", scale=scale), y2="hi:Q"))
        return layered(*layers, *_marks(results, case, time, end_s))

    moments = [_moments(results, case) for case in shown]
    changes = " Dashed: a flow comes or goes." if any(found for found, _ in moments) else ""
    fair = (
        " “Fair”: from here on the goodputs of every second are within 20 % of each other for 5 s, "
        "the median over the repeats; where it is missing, most repeats did not get there."
    )
    repeated = " Shade: the range over all repeats, line: the run with the median goodput."
    caption = (
        "1 is an equal division, the lower end of the scale one flow with all goodput."
        f"{changes}{fair if any(found for _, found in moments) else ''} Each point is "
        f"{theme.significant(COARSE_BIN_S)} s in which at least two flows are active."
        f"{repeated if any(len(case.runs) > 1 for case in shown) else ''}"
    )
    title = "Fairness over time"
    rows = [
        line(indices[case.label].filter(run=case.typical).drop("run"), "jain_index")
        for case in shown
    ]
    return stacked(NAME, title, caption, results, shown, rows, draw)


def _indices(results: Results, case: Case) -> pl.DataFrame:
    """`run`, `t_s` and `jain_index` of all repeats, where there is one."""
    from weir.dynamics import convergence  # single flows do not need its imports

    width = max(COARSE_BIN_S, results.bin_s(case.label))
    parts = [
        convergence.jain_over_time(results.curves[run], width).select(
            pl.lit(run).alias("run"), "t_s", "jain_index"
        )
        for run in case.runs
    ]
    return pl.concat(parts).drop_nulls()


def explorer(scene: Scene) -> Explorer | None:
    """The same of every case and repeat, for a page."""
    found, extras = Lines(), {}
    for case in scene.cases:
        if scene.results.shared_runs.isdisjoint(case.runs):
            continue
        rows = _indices(scene.results, case)
        for (run,), part in rows.sort("run", "t_s").partition_by("run", as_dict=True).items():
            index, repeat = part["jain_index"], scene.repeats[run]
            found.add(
                case.label, Line("Jain index", case.colour, part["t_s"], index, repeat=repeat)
            )
        found.bands.update(
            scene.ranges(rows.select(pl.lit(case.label).alias("label"), "t_s", value="jain_index"))
        )
        flows = max(len(scene.results.curves[run]) for run in case.runs)
        changes, fair = _moments(scene.results, case)
        extras[case.label] = {"moments": [*changes, *fair], "y_range": (1 / flows, 1.02)}
    return scene.explorer(found, "Jain index", extras)


Moment = tuple[float, str]


def _moments(results: Results, case: Case) -> tuple[list[Moment], list[Moment]]:
    """When flows come or go, and when the median repeat has converged."""
    changes, fair = [], []
    for change in results.changes(case.label):
        changes.append((change.at_s, change.event))
        *_, coarse = change.converged.values() or [None]
        if coarse is not None and coarse.median_s is not None:
            text = f"fair after {theme.significant(coarse.median_s)} s"
            fair.append((change.at_s + coarse.median_s, f"{text}, {coarse.ended} of {coarse.n}"))
    return changes, fair


def _marks(results: Results, case: Case, time: Spec, end_s: float) -> list[Chart]:
    """Named lines at these moments."""
    changes, fair = _moments(results, case)
    return [
        *_named(changes, time, end_s, colour=theme.SOFT, dash=[4, 3], row=0),
        *_named(fair, time, end_s, colour=theme.INK, dash=[1, 0], row=1),
    ]


def _named(
    moments: Sequence[Moment],
    time: Spec,
    end_s: float,
    *,
    colour: str,
    dash: Sequence[int],
    row: int,
) -> list[Chart]:
    if not moments:
        return []
    frame = pl.DataFrame(moments, ["t_s", "text"], orient="row")
    base = Chart(inline(frame)).encode(x=time)
    rule = base.mark("rule", color=colour, strokeDash=list(dash), strokeWidth=1)
    # The second kind of line stops above the names of the first.
    layers = [rule.encode(y={"value": 0}, y2={"value": HEIGHT - 16 * row})]
    # Names stand right of their line, near the bottom; those near the right edge left of it.
    is_late = pl.col("t_s") > 0.8 * end_s
    height = {"value": HEIGHT - 8 - 13 * row}
    for own, text in (
        (frame.filter(~is_late), {"align": "left", "dx": 4}),
        (frame.filter(is_late), {"align": "right", "dx": -4}),
    ):
        if not own.is_empty():
            named = Chart(inline(own)).mark("text", **text, fontSize=10, color=colour)
            layers.append(named.encode(x=time, y=height, text="text:N"))
    return layers
