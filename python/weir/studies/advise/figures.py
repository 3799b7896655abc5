"""The picture of study `advise`: the gain that an advice promises, and what was really got."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weir.cells.protocol import Cell
from weir.graphics import theme
from weir.graphics.chart import Chart, channel, inline, layered
from weir.plots import Figure
from weir.studies.advise.judge import Judgement

_SIZE = 360
_COLOURS = {
    Judgement.RIGHT: theme.COLD,
    Judgement.INCONCLUSIVE: theme.SOFT,
    Judgement.WRONG: theme.WARN,
}


def promises(cells: Sequence[Cell], runs: tuple[int, ...]) -> Figure:
    """A point per path: of the advised controller, or of the best one where none is advised."""
    rows = [
        {
            "path": one["row"],
            "judgement": str(one["judgement"]),
            "advice": f"{one['verdict']}: {one['advised'] or 'none'}",
            "got": one["ours"]["mean"],
            "promised": one["predicted"]["mean"] or 1.0,
            "lo": one["predicted"]["lo"] or 1.0,
            "hi": one["predicted"]["hi"] or 1.0,
        }
        for one in cells
    ]
    frame = pl.DataFrame(rows)
    low, high = _ends(frame)
    scale = {"type": "log", "domain": [low, high], "nice": False}
    names = [str(one) for one in _COLOURS]
    colours = {"domain": names, "range": list(_COLOURS.values())}
    base = Chart(inline(frame)).encode(
        x=channel("got:Q", scale=scale, title="gain that was got"),
        color=channel("judgement:N", scale=colours, legend={"title": None}),
    )
    lines = base.mark("rule", clip=True).encode(y=channel("lo:Q", scale=scale), y2="hi:Q")
    points = base.mark("circle", size=55, opacity=0.9).encode(
        y=channel("promised:Q", scale=scale, title="gain that the advice promises"),
        tooltip=["path:N", "advice:N", "got:Q", "promised:Q"],
    )
    ends = pl.DataFrame({"got": [low, high], "promised": [low, high]})
    diagonal = (
        Chart(inline(ends))
        .mark("line", color=theme.FAINT, strokeDash=[4, 3])
        .encode(x=channel("got:Q", scale=scale), y=channel("promised:Q", scale=scale))
    )
    chart = layered(diagonal, lines, points).properties(width=_SIZE, height=_SIZE)
    caption = (
        "A point per path: the goodput of the advised controller over that of CUBIC, as promised "
        "and as got. Where nothing is advised, the promise is 1 and the best of all was got. "
        "Lines are 95 % intervals; both axes are logarithmic."
    )
    return Figure("advise", "Promised and got", caption, chart, frame, runs)


def _ends(frame: pl.DataFrame) -> tuple[float, float]:
    """The ends of both axes."""
    values = pl.concat([frame["got"], frame["promised"]])
    return float(values.min()) / 1.2, float(values.max()) * 1.3  # type: ignore[arg-type]
