"""Figures from results: one grammar, one look, each with its numbers and what to look for.

>>> for figure in weir.plots.figures(results):  # doctest: +SKIP
...     figure.save(Path("paper"), ["pdf"])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain

from weir.comparison.contrasts import compared
from weir.graphics import select
from weir.graphics.explore import Explorer
from weir.graphics.figure import FORMATS, Figure, Figures
from weir.graphics.select import Case
from weir.plots import (
    across,
    distribution,
    fabric,
    interactive,
    over_time,
    shares,
    sharing,
    sweep,
    topology,
)
from weir.plots.interactive import Scene
from weir.results.metrics import Metric
from weir.results.results import Results

__all__ = ["FORMATS", "Figure", "Figures", "figures"]

Draw = Callable[[Results, Sequence[Case]], Figure | None]
Explore = Callable[[Scene], Explorer | None]

_FIRST: tuple[Draw, ...] = (
    topology.topology,
    fabric.drawing,
    fabric.slowdowns,
    across.goodput_against_delay,
)
_OTHERS: tuple[Draw, ...] = (
    distribution.answers,
    shares.flows,
    over_time.goodput,
    sharing.fairness,
    over_time.windows,
    over_time.delays,
    over_time.queues,
    distribution.waiting,
    shares.limits,
)
_EXPLORERS: Mapping[str, Explore] = {
    "goodput": interactive.goodput,
    sharing.NAME: sharing.explorer,
    "cwnd": interactive.windows,
    "rtt": interactive.delays,
    "queue": interactive.queues,
}
"""What a page draws for figures of these names."""
_MANY_CASES = 24


def figures(results: Results, shown: Sequence[Metric] | None = None) -> list[Figure]:
    """Every figure that these results have the data for, the most telling first.

    `shown` are the metrics that some compare, in place of the usual ones.
    """
    cases = select.cases(results)
    if not cases:
        return []
    shown = compared(results) if shown is None else shown
    curves = sweep.curves(results, cases, shown)
    # Over a sweep the curves say the same as one row or one dot per case, only readably.
    some = select.shown_over_time(cases) if curves else cases[:_MANY_CASES]
    intervals: Draw = partial(across.intervals, shown=shown)
    drawn = (draw(results, some) for draw in (*_FIRST, intervals, *_OTHERS))
    scene = cache(lambda: interactive.scene(results, cases))
    return [
        replace(
            figure,
            caution=results.caution,
            explorer=_later(explore, scene) if (explore := _EXPLORERS.get(figure.name)) else None,
        )
        for figure in chain(curves, drawn)
        if figure is not None
    ]


def _later(explore: Explore, scene: Callable[[], Scene]) -> Callable[[], Explorer | None]:
    return lambda: explore(scene())
