"""One look for every figure: type, colours, sizes, and the words on an axis."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from weir import _native

WIDTH = 760
"""Width of a figure's plotting area in pixels; it fits an A4 page and a laptop's window."""

MINUS = "\N{MINUS SIGN}"

INK = "#1f2328"
SOFT = "#59636e"
FAINT = "#d0d7de"
WARN = "#a40e26"
COLD = "#0072b2"
WARM = "#d55e00"

_FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"

# Okabe and Ito's palette (Color Universal Design, 2008), whose colours stay apart for the common
# kinds of colour blindness; its yellow, too faint on white, is left out, and grey and brown added.
_PALETTE = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#6e4b2a",
    "#7f7f7f",
)

_SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)
"""The mark that goes with each colour of the palette."""

_LIGHTEST = 0.6
"""How far towards white the shades of one colour go."""

# A well-known controller has the same colour in every report, whatever it is compared with.
_USUAL = {
    "reno": 0,
    "cubic": 1,
    "bbr": 2,
    "vegas": 3,
    "westwood": 4,
    "veno": 5,
    "dctcp": 6,
    "none": 7,
    "NewReno": 0,
    "SACK": 1,
    "Muzha": 2,
    "Vegas": 3,
}


def stack_colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each stack (or other series), all different for up to eight of them."""
    wanted = list(dict.fromkeys(names))
    colours: dict[str, str] = {}
    free = list(range(len(_PALETTE)))
    for name in wanted:
        usual = _USUAL.get(_controller(name))
        if usual in free:
            colours[name] = _PALETTE[usual]
            free.remove(usual)
    for position, name in enumerate(wanted):
        if name not in colours:
            colours[name] = _PALETTE[free.pop(0) if free else position % len(_PALETTE)]
    return {name: colours[name] for name in wanted}


def stack_shapes(names: Iterable[str]) -> dict[str, str]:
    """A mark for each stack (or other series), which goes with its colour in every figure.

    Of more series than colours the later ones have other marks than the first of their colour.
    """
    shapes: dict[str, str] = {}
    for position, (name, colour) in enumerate(stack_colours(names).items()):
        shift = len(_SHAPES) // 2 * (position // len(_PALETTE))
        shapes[name] = _SHAPES[(_PALETTE.index(colour) + shift) % len(_SHAPES)]
    return shapes


def flow_colours(flows: Sequence[str], stacks: Sequence[str], colour: str) -> dict[str, str]:
    """A colour for each flow: its stack's where stacks differ, else a shade of `colour`."""
    if len(set(stacks)) > 1:
        by_stack = stack_colours(stacks)
        shades = [by_stack[stack] for stack in stacks]
    else:
        step = _LIGHTEST / max(len(flows) - 1, 1)
        shades = [_mixed_with_white(colour, step * position) for position in range(len(flows))]
    return dict(zip(flows, shades, strict=True))


def darker(colour: str) -> str:
    """A shade of `colour` that can be read as text on white."""
    return "#" + "".join(f"{round(channel * 0.72):02x}" for channel in channels(colour))


def config() -> dict[str, Any]:
    """The Vega-Lite configuration that carries the theme."""
    axis = {
        "labelColor": SOFT,
        "titleColor": INK,
        "titleFontWeight": "normal",
        "titleFontSize": 12,
        "labelFontSize": 11,
        "gridColor": "#eaeef2",
        "domainColor": FAINT,
        "tickColor": FAINT,
        "labelOverlap": "greedy",
        "tickCount": 6,
    }
    return {
        "background": "white",
        "font": _FONT,
        "view": {"stroke": None},
        "axis": axis,
        "title": {"anchor": "start", "color": INK, "fontSize": 12, "fontWeight": 600, "offset": 6},
        "legend": {
            "labelColor": INK,
            "titleColor": SOFT,
            "titleFontWeight": "normal",
            "labelFontSize": 11,
            "titleFontSize": 11,
            "symbolStrokeWidth": 2,
        },
        "text": {"color": INK, "fontSize": 11},
        "header": {"labelColor": INK, "titleColor": SOFT, "labelFontSize": 12},
    }


def short_key(key: str) -> str:
    """A dotted key of a scenario without the sections that go without saying."""
    return re.sub(r"^(topology|measure)\.|^flow\.\d+\.", "", key).removeprefix("forward.")


def significant(value: float | None, digits: int = 3) -> str:
    """`value` at three significant digits, without an exponent where it can be avoided."""
    if value is None or value != value:  # NaN is the only number that differs from itself
        return "–"
    text = f"{value:.{digits}g}"
    plain = f"{value:.0f}" if "e+" in text and abs(value) < 1e9 else text
    return plain.replace("-", MINUS, 1) if plain.startswith("-") else plain


def number_axis(numbers: Sequence[float]) -> dict[str, Any]:
    """An axis with a tick at each of `numbers` and nowhere else, labelled without rounding."""
    values = sorted(set(numbers))
    # Vega drops every other of the values while there are more than its tick count.
    expression = "'' + datum.value"
    return {"values": values, "tickCount": len(values), "grid": False, "labelExpr": expression}


def numeric_axis(values: Sequence[str]) -> tuple[list[float], str] | None:
    """Swept values as numbers and their unit: `("1bdp", "2bdp")` gives `([1, 2], "bdp")`.

    None when one is not a number, or when their units are not of one kind.
    """
    matches = [re.fullmatch(r"([+-]?\d+(?:\.\d+)?)\s*([A-Za-z%/]*)", value) for value in values]
    pairs = [(float(match[1]), match[2]) for match in matches if match]
    if len(pairs) != len(values) or not pairs:
        return None
    units = {unit for number, unit in pairs if number != 0 or unit}
    if len(units) <= 1:
        return [number for number, _ in pairs], units.pop() if units else ""
    for kind, (unit, scale) in _KINDS.items():
        with contextlib.suppress(ValueError):
            return [_native.parse_quantity(kind, value) * scale for value in values], unit
    return None


_KINDS: dict[Literal["time", "rate", "size"], tuple[str, float]] = {
    "time": ("ms", 1e3),
    "rate": ("Mbit/s", 1e-6),
    "size": ("kB", 1e-3),
}


def _controller(name: str) -> str:
    return re.split(r"[(\s]", name.rpartition("/")[2], maxsplit=1)[0]


def _mixed_with_white(colour: str, share: float) -> str:
    return "#" + "".join(f"{round(c + (255 - c) * share):02x}" for c in channels(colour))


def channels(colour: str) -> tuple[int, ...]:
    """Red, green and blue of `#rrggbb`."""
    return tuple(int(colour[start : start + 2], 16) for start in (1, 3, 5))


def luminance(colour: tuple[float, ...]) -> float:
    """Relative luminance of a colour (WCAG 2.2)."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))
