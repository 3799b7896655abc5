"""Long names in figures: on several lines, never cut.

Names that differ in their last parameter only are the same name once they are cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from weir.graphics.chart import Spec

LINE = 32
"""Most letters of a line, unless a name has no place to break."""

_BREAK = rf"(?=.{{{LINE + 1}}})(.{{1,{LINE}}}[,(/ ])"
"""A line of a name that has more than fits; it ends with what names are made of parts with."""
_LINE_HEIGHT, _SPACE = 13, 8
_EXPRESSION = (
    f"length(datum.label) > {LINE} ? "
    f"split(replace(datum.label, regexp('{_BREAK}', 'g'), '$1\\n'), '\\n') : datum.label"
)
"""The same of a label, in Vega's language."""
_GUIDES = {"x": "axis", "y": "axis", "color": "legend", "shape": "legend", "fill": "legend"}


def lines(name: str) -> list[str]:
    """Breaks a name after commas, opening parentheses, slashes and spaces.

    >>> lines("cubic(beta=0.8)")
    ['cubic(beta=0.8)']
    >>> lines("rack/cubic(beta=0.8,hystart=off,fast_convergence=off)")
    ['rack/cubic(beta=0.8,hystart=off,', 'fast_convergence=off)']
    """
    return re.sub(_BREAK, "\\1\n", name).split("\n")


def width(names: Iterable[str]) -> int:
    """The letters of the longest line."""
    return max((len(line) for name in names for line in lines(name)), default=0)


def row_height(names: Iterable[str], least: int) -> int:
    """The height of rows with these names, in pixels: at least `least`."""
    most = max((len(lines(name)) for name in names), default=1)
    return max(least, _LINE_HEIGHT * most + _SPACE)


def complete(spec: Any) -> None:
    """Sets all labels of axes and legends of names so that none is cut or left out, in place."""
    if isinstance(spec, list):
        for part in spec:
            complete(part)
    if not isinstance(spec, dict):
        return
    for channel, encoded in spec.get("encoding", {}).items():
        guide = _GUIDES.get(channel)
        if guide and isinstance(encoded, dict) and encoded.get("type") in ("nominal", "ordinal"):
            _unlimit(encoded, guide, {"labelOverlap": False} if channel == "y" else {})
    for key, part in spec.items():
        if key not in ("data", "datasets", "config", "encoding"):
            complete(part)


def _unlimit(encoded: Spec, guide: str, more: Spec) -> None:
    own = encoded.get(guide, {})
    if own is not None and "labelExpr" not in own:
        encoded[guide] = {**own, **more, "labelExpr": _EXPRESSION, "labelLimit": 0}
