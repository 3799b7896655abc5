"""The curves of the study."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weir.plots.lines import LineAxes, lines
from weir.report.cells import claims_table, value_table
from weir.report.model import ReportSection
from weir.results import Results
from weir.studies.cells import Cells, frame, runs_of
from weir.studies.random_loss.laws import LAWS, ceiling
from weir.studies.random_loss.measures import GOODPUT, percent_of

_AXES = LineAxes("random loss, %", "goodput, Mbit/s", is_x_log=True, is_y_log=True, columns=1)
_LINK = "what losses leave"


def sections(results: Results, cells: Cells) -> Sequence[ReportSection]:
    """Goodput against loss, measured and by law, and what was expected."""
    own = cells.table(GOODPUT)
    percents = [percent_of(column) for column in own.columns()]
    runs = runs_of(results, "")
    measured = lines(
        "goodput",
        "Goodput against random loss",
        "Each point is the mean over the seeds with its 95 % interval. “What losses leave” is "
        "the link's goodput less what is lost: the upper bound.",
        pl.concat([frame(own, "measured", percents), _theory("measured", percents, [_LINK])]),
        _AXES,
        runs,
    )
    laws = lines(
        "laws",
        "Reno and CUBIC beside their laws",
        "Reno: √(3/2p) segments per round trip (Mathis et al. 1997). CUBIC: RFC 9438 §5.1. Both at "
        "most what the link carries.",
        pl.concat(
            [
                frame(Cells([c for c in own.all if c["row"] in LAWS]), "by law", percents),
                _theory("by law", percents, [f"{stack}, law" for stack in LAWS]),
            ]
        ),
        _AXES,
        runs,
    )
    table = value_table(own, "Goodput in Mbit/s: mean and 95 % interval.", "control")
    return [
        ReportSection("Goodput against loss", figures=[measured, laws], tables=[table]),
        ReportSection("What was expected", tables=[claims_table(cells)]),
    ]


def _theory(panel: str, percents: Sequence[float], series: Sequence[str]) -> pl.DataFrame:
    """Curves without intervals, in the form of `frame`."""
    curves = {_LINK: ceiling, **{f"{stack}, law": law for stack, law in LAWS.items()}}
    rows = [
        (panel, name, percent, curves[name](percent / 100), None, None, None)
        for name in series
        for percent in percents
    ]
    names = ("panel", "series", "at", "value", "lo", "hi", "n")
    kinds = (pl.String, pl.String, pl.Float64, pl.Float64, pl.Float64, pl.Float64, pl.Int64)
    return pl.DataFrame(rows, dict(zip(names, kinds, strict=True)), orient="row")
