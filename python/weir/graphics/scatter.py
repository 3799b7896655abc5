"""Throughput against delay as the Pantheon draws it: a panel per path, a named point per scheme.

Delay is logarithmic and grows to the left, so that what is better lies to the upper right. Names
stand next to their points, not in a legend: eighteen schemes would need eighteen distinct
colours. Where points are close together the names give way and a thin line leads to the point.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from weir.graphics import theme
from weir.graphics.chart import Chart, Compound, Shown, Spec, channel, in_columns, inline, layered
from weir.graphics.figure import Figure

_HEIGHT = 190
_GAP = 26
_MARGIN = 52
_LETTER = 5.7
"""Width of a letter of a name in pixels, at its size."""

_LINE = 11.0
_FONT = 10
_APART = 7.0
"""From the middle of a point to the beginning of its name."""

_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
_HEADROOM = 1.12
_NARROWEST = 1.6
"""A panel shows at least this ratio of delays: what differs by less is drawn as close as it is."""

_LEADER = 16.0
"""A name farther than this from its point has a line to it."""

_OVERHANG = 20.0
"""How far a name may reach beyond the right edge of its panel."""


@dataclass(frozen=True, slots=True)
class ScatterAxes:
    """What the axes mean, and how many panels stand side by side."""

    x: str
    y: str
    columns: int = 3


@dataclass(frozen=True, slots=True)
class _Box:
    """Where something is drawn, in pixels from the upper left."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: _Box) -> float:
        """The area that both cover."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, wide) * max(0.0, high)


@dataclass(frozen=True, slots=True)
class _Frame:
    """The scales of a panel."""

    width: float
    x: tuple[float, float]
    y: tuple[float, float]

    def pixel(self, x: float, y: float) -> tuple[float, float]:
        """Where a value is drawn."""
        across = math.log(self.x[1] / x) / math.log(self.x[1] / self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return across * self.width, (1 - up) * _HEIGHT

    def value(self, left: float, top: float) -> tuple[float, float]:
        """The values that are drawn there."""
        x = self.x[1] * (self.x[0] / self.x[1]) ** (left / self.width)
        return x, self.y[0] + (1 - top / _HEIGHT) * (self.y[1] - self.y[0])


def scatter(
    name: str,
    title: str,
    caption: str,
    data: pl.DataFrame,
    levels: Mapping[str, float],
    axes: ScatterAxes,
    runs: Sequence[int] = (),
) -> Figure:
    """`data` has `panel`, `series`, and `x`, `x_lo`, `x_hi`, `y`, `y_lo`, `y_hi`.

    Intervals are drawn as crosses and cut off at the panel's edges. `levels` has, by panel, a
    dashed line: what the link could carry.
    """
    colours = theme.stack_colours(dict.fromkeys(data["series"]))
    columns = min(axes.columns, data["panel"].n_unique())
    width = (theme.WIDTH + 40 - _GAP * (columns - 1)) // columns - _MARGIN
    charts = [
        _panel(data.filter(panel=panel), colours, levels.get(panel), axes, width).properties(
            title={"text": panel, "fontSize": 11}, width=width, height=_HEIGHT
        )
        for panel in dict.fromkeys(data["panel"])
    ]
    chart = in_columns(*charts, columns=columns, spacing=_GAP).resolve_scale(
        x="independent", y="independent", color="shared"
    )
    return Figure(name, title, caption, chart, data, tuple(runs))


def _panel(
    data: pl.DataFrame,
    colours: Mapping[str, str],
    level: float | None,
    axes: ScatterAxes,
    width: float,
) -> Compound:
    frame = _frame(data, level, width)
    ticks = {"values": _ticks(frame.x), "labelExpr": "'' + datum.value", "grid": True}
    # The smaller end of the domain first, and the axis itself turned round.
    x_scale = {"type": "log", "domain": list(frame.x), "nice": False, "reverse": True}
    y_scale = {"domain": list(frame.y), "nice": False}
    colour_scale = {"domain": list(colours), "range": list(colours.values())}
    colour = channel("series:N", scale=colour_scale, legend=None)

    def x(field: str) -> Spec:
        return channel(f"{field}:Q", title=axes.x, axis=ticks, scale=x_scale)

    def y(field: str) -> Spec:
        return channel(f"{field}:Q", title=axes.y, axis={"tickCount": 4}, scale=y_scale)

    inside = data.with_columns(
        pl.col("x_lo", "x_hi").clip(*frame.x), pl.col("y_lo", "y_hi").clip(*frame.y)
    )
    base = Chart(inline(inside))
    names = Chart(inline(_names(data, level, frame)))
    tips: list[Shown] = ["series:N", channel("x:Q", format=".4~g"), channel("y:Q", format=".4~g")]
    layers = [
        names.mark("rule", strokeWidth=0.6, opacity=0.7).encode(
            x=x("from_x"), x2="to_x:Q", y=y("from_y"), y2="y:Q", color=colour
        ),
        base.mark("rule", strokeWidth=1.3).encode(x=x("x_lo"), x2="x_hi:Q", y=y("y"), color=colour),
        base.mark("rule", strokeWidth=1.3).encode(x=x("x"), y=y("y_lo"), y2="y_hi:Q", color=colour),
        base.mark("point", filled=True, size=46, opacity=1).encode(
            x=x("x"), y=y("y"), color=colour, tooltip=tips
        ),
        names.mark("text", align="left", baseline="middle", fontSize=_FONT).encode(
            x=x("x"), y=y("y"), text="series:N", color=_dark(colours)
        ),
    ]
    if level is not None:
        line = Chart(inline(pl.DataFrame({"level": [level]})))
        layers.insert(
            0,
            line.mark("rule", color=theme.SOFT, strokeDash=[4, 3], strokeWidth=1).encode(
                y=y("level")
            ),
        )
    chart: Compound = layered(*layers).resolve_scale(color="independent")
    return chart


def _dark(colours: Mapping[str, str]) -> Spec:
    """The colours of names, which must be read as text."""
    dark = [theme.darker(colour) for colour in colours.values()]
    return channel("series:N", scale={"domain": list(colours), "range": dark}, legend=None)


def _frame(data: pl.DataFrame, level: float | None, width: float) -> _Frame:
    """All points and the level with a margin around them; throughput from zero on."""
    delays = [float(value) for value in data["x"]]
    low, high = min(delays), max(delays)
    wider = max(1.0, _NARROWEST / (high / low)) ** 0.5
    tops = [float(value) for value in data["y"]] + ([] if level is None else [level])
    x = low / wider / _HEADROOM, high * wider * _HEADROOM
    return _Frame(width, x, (0.0, max(tops) * _HEADROOM))


def _ticks(domain: tuple[float, float]) -> list[float]:
    """A few round numbers within a domain, with equal ratios as far as can be."""
    low, high = domain
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), _STEPS):
        values = [step * 10.0**decade for decade in decades for step in steps]
        found = [float(f"{value:.6g}") for value in values if low <= value <= high]
        if len(found) >= 3:
            break
    return found


def _names(data: pl.DataFrame, level: float | None, frame: _Frame) -> pl.DataFrame:
    """Where the name of each point begins, and where the thin line to it begins and ends."""
    points = [
        (str(row["series"]), frame.pixel(row["x"], row["y"])) for row in data.iter_rows(named=True)
    ]
    taken = [*(_Box(px - 4, py - 4, px + 4, py + 4) for _, (px, py) in points), *_bars(data, frame)]
    if level is not None:
        _, height = frame.pixel(frame.x[0], level)
        taken.append(_Box(0, height - 1, frame.width, height + 1))
    rows = []
    # Those with the least space, in the crowd at the top right, choose first.
    for series, (px, py) in sorted(points, key=lambda point: (point[1][1], -point[1][0])):
        boxes = list(_places(px, py, len(series) * _LETTER, frame.width))
        best = min(boxes, key=lambda box: math.fsum(box.overlap(other) for other in taken))
        taken.append(best)
        middle = (best.top + best.bottom) / 2
        x, y = frame.value(best.left, middle)
        nearest = min(max(px, best.left), best.right)
        to_x, _ = frame.value(nearest, middle)
        gap = math.dist((px, py), (nearest, middle))
        from_x, from_y = frame.value(px, py) if gap > _LEADER else (to_x, y)
        rows.append((series, x, y, from_x, from_y, to_x))
    names = ("series", "x", "y", "from_x", "from_y", "to_x")
    kinds = (pl.String, *(pl.Float64,) * 5)
    return pl.DataFrame(rows, dict(zip(names, kinds, strict=True)), orient="row")


def _bars(data: pl.DataFrame, frame: _Frame) -> Iterator[_Box]:
    """What the intervals cover, a little wider than they are drawn."""
    for row in data.iter_rows(named=True):
        px, py = frame.pixel(row["x"], row["y"])
        ends = [min(max(row[end], frame.x[0]), frame.x[1]) for end in ("x_hi", "x_lo")]
        left, right = (frame.pixel(end, row["y"])[0] for end in ends)
        top, bottom = (frame.pixel(row["x"], row[end])[1] for end in ("y_hi", "y_lo"))
        yield _Box(left, py - 2, right, py + 2)
        yield _Box(px - 2, max(top, 0), px + 2, min(bottom, _HEIGHT))


def _places(px: float, py: float, wide: float, width: float) -> Iterator[_Box]:
    """Where a name may stand within the panel, the best places first."""
    lifts = sorted(range(-12, 13), key=abs)
    for lift in lifts:
        top = py + lift * _LINE - _LINE / 2
        for left in (px + _APART, px - _APART - wide, px - wide / 2):
            is_inside = 0 <= left <= width + _OVERHANG - wide and 0 <= top <= _HEIGHT - _LINE
            if is_inside and (lift or left != px - wide / 2):
                yield _Box(left, top, left + wide, top + _LINE)
    yield _Box(px + _APART, py - _LINE / 2, px + _APART + wide, py + _LINE / 2)
