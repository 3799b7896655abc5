"""Figures from results: one grammar, one look, each with its numbers and what to look for.

>>> for figure in weir.plots.figures(results):  # doctest: +SKIP
...     figure.save(Path("paper"), ["pdf"])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from weir.plots import across, distribution, over_time, select, shares, sharing, sweep, topology
from weir.plots.figure import FORMATS, Figure, Figures
from weir.results import Results

__all__ = ["FORMATS", "Figure", "Figures", "each", "figures"]

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
    return list(each(results))


def each(results: Results) -> Iterator[Figure]:
    """The same one by one, so that one can be drawn while the next is composed."""
    cases = select.cases(results)
    if not cases:
        return
    curves = sweep.curves(results, cases)
    # Over a sweep the curves say the same as one row or one dot per case, only readably.
    compared = select.shown_over_time(cases) if curves else cases[:_MANY_CASES]
    drawn = (draw(results, compared) for draw in (*_OVERVIEW, *_DETAIL))
    for figure in chain(curves, drawn):
        if figure is not None:
            yield replace(figure, caution=results.caution)
