"""Figures from results: one grammar, one look, each with its numbers and what to look for.

>>> for figure in weir.plots.figures(results):  # doctest: +SKIP
...     figure.save(Path("paper"), ["pdf"])
"""

from __future__ import annotations

from dataclasses import replace

from weir.plots import across, distribution, over_time, select, shares, sharing, sweep, topology
from weir.plots.figure import FORMATS, Figure
from weir.results import Results

__all__ = ["FORMATS", "Figure", "figures"]

_OVERVIEW = (
    topology.topology,
    across.goodput_against_delay,
    across.intervals,
    distribution.answers,
    shares.flows,
)
_DETAIL = (
    over_time.goodput,
    sharing.fairness,
    over_time.windows,
    over_time.delays,
    over_time.queues,
    distribution.waiting,
    shares.limits,
)
_MANY_CASES = 24


def figures(results: Results) -> list[Figure]:
    """Every figure that these results have the data for, the most telling first."""
    cases = select.cases(results)
    if not cases:
        return []
    curves = sweep.curves(results, cases)
    # Over a sweep the curves say the same as one row or one dot per case, only readably.
    compared = select.shown_over_time(cases) if curves else cases[:_MANY_CASES]
    drawn = [draw(results, compared) for draw in _OVERVIEW]
    drawn += [draw(results, compared) for draw in _DETAIL]
    found = [*curves, *(figure for figure in drawn if figure is not None)]
    return [replace(figure, caution=results.caution) for figure in found]
