"""Figures for papers: as wide as a column, in its type size."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Self

from weir.base.errors import InputError
from weir.base.options import Option
from weir.graphics import names
from weir.graphics.chart import Spec

_POINTS = {"in": 72.0, "cm": 72 / 2.54, "mm": 72 / 25.4, "pt": 1.0}
_LEAST_PT, _MOST_PT = 72.0, 1440.0
_FONTS_PT = (4.0, 40.0)
_LEAST_SHARE = 0.5
"""A narrow picture keeps this share of its height: lines stay apart."""
_PER_LEGEND_COLUMN_PT = 110.0
_USUAL_FONT_PT, _LETTER_EMS, _SYMBOL_PT = 11.0, 0.5, 20.0
"""The theme's type size, the mean width of a letter, and the space of a legend's symbol."""
_PER_PANEL_PT = 200.0
_ENOUGH = 0.01
_MOST_STEPS, _LEAST_SCALE = 8, 0.02
_MOST_LEGEND_COLUMNS = 99

_PARTS = ("layer", "vconcat", "hconcat", "concat")
_FONT_SIZES = ("fontSize", "labelFontSize", "titleFontSize", "subtitleFontSize")


@dataclass(frozen=True, slots=True)
class PaperOptions:
    """Which figures become files, and their size, as a person writes them."""

    width: Annotated[
        str | None,
        Option("Width of figures in files, with all labels, as in `3.4in`.", metavar="LENGTH"),
    ] = None
    font_size: Annotated[
        float | None, Option("Type size of figures in files, in points.", metavar="POINTS")
    ] = None
    figure: Annotated[
        list[str] | None,
        Option("Write only this figure to a file; may be given more than once.", metavar="NAME"),
    ] = None


@dataclass(frozen=True, slots=True)
class Paper:
    """The size of figures in files."""

    width_pt: float | None = None
    """Of the whole picture, with its labels and legends."""
    font_pt: float | None = None

    @classmethod
    def of(cls, width: str | None, font_size: float | None) -> Self:
        """From what a person wrote: `3.4in`, and points.

        Raises:
            InputError: one of them is no such size.
        """
        low, high = _FONTS_PT
        if font_size is not None and not low <= font_size <= high:
            raise InputError(f"--font-size {font_size:g}: {low:g} to {high:g} points")
        return cls(None if width is None else _length(width), font_size)

    def fit(self, spec: Spec, drawn_px: Callable[[Spec], float]) -> Spec:
        """A specification in this size, whose pixels are points.

        `drawn_px` draws one and returns its width.

        Raises:
            InputError: its labels leave no space.
        """
        spec = copy.deepcopy(spec)
        if self.font_pt is not None:
            _set_fonts(spec, self.font_pt)
        if self.width_pt is None:
            return spec
        font = self.font_pt or _USUAL_FONT_PT
        for view in _views(spec):
            if "concat" in view and "columns" in view:
                view["columns"] = min(view["columns"], max(1, int(self.width_pt / _PER_PANEL_PT)))
        # A legend begins where the plot does, so that it may have less space than the picture.
        for most in (_MOST_LEGEND_COLUMNS, 1):
            _stack_legends(spec, self.width_pt, font, most)
            if (fitted := _fitted(spec, self.width_pt, drawn_px)) is not None:
                return fitted
        raise InputError(
            f"--width: a figure's labels leave its plot no space in {self.width_pt / 72:.1f} in; "
            "give a larger width or a smaller --font-size"
        )


def _fitted(spec: Spec, wanted: float, drawn_px: Callable[[Spec], float]) -> Spec | None:
    """The same with plots so wide that the picture is as wide as wanted; None if it cannot be."""
    # Labels around the plots do not shrink with them: the secant method finds the scale.
    before, drawn_before = 1.0, drawn_px(spec)
    scale = wanted / drawn_before
    for _ in range(_MOST_STEPS):
        fitted = _scaled(spec, scale)
        drawn = drawn_px(fitted)
        if abs(drawn - wanted) <= _ENOUGH * wanted:
            return fitted
        slope = (drawn - drawn_before) / (scale - before) if scale != before else 0.0
        if slope <= 0:
            break
        before, drawn_before = scale, drawn
        scale = max(_LEAST_SCALE, scale + (wanted - drawn) / slope)
    return None


def _length(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(in|cm|mm|pt)", text.strip())
    points = float(found[1]) * _POINTS[found[2]] if found else 0.0
    if not _LEAST_PT <= points <= _MOST_PT:
        raise InputError(f"--width {text}: write 1in to 20in, also in cm, mm or pt, as in 3.4in")
    return points


def _views(spec: Spec) -> Iterator[Spec]:
    """A specification and those that it consists of."""
    yield spec
    for part in _PARTS:
        for inner in spec.get(part, ()):
            yield from _views(inner)
    if isinstance(spec.get("spec"), dict):
        yield from _views(spec["spec"])


def _has_rows(view: Spec) -> bool:
    kind: str | None = view.get("encoding", {}).get("y", {}).get("type")
    return kind == "nominal"


def _scaled(spec: Spec, scale: float) -> Spec:
    spec = copy.deepcopy(spec)
    usual = max(scale, min(1.0, _LEAST_SHARE))
    for view in _views(spec):
        # Rows of names stay as high as their names.
        high = 1.0 if any(map(_has_rows, _views(view))) else usual
        for key, factor in (("width", scale), ("height", high)):
            if isinstance(view.get(key), int | float):
                view[key] = max(1, round(view[key] * factor))
        for channel, factor in (("x", scale), ("x2", scale), ("y", high), ("y2", high)):
            place = view.get("encoding", {}).get(channel, {})
            if isinstance(place.get("value"), int | float):
                place["value"] *= factor
    return spec


def _set_fonts(value: Any, size: float) -> None:
    """Every text in one size: a paper's figures have no larger type than its captions."""
    if isinstance(value, dict):
        for key in value:
            if key in _FONT_SIZES and isinstance(value[key], int | float):
                value[key] = size
            else:
                _set_fonts(value[key], size)
    elif isinstance(value, list):
        for inner in value:
            _set_fonts(inner, size)


def _stack_legends(value: Any, width_pt: float, font_pt: float, most: int) -> None:
    """Legends stand above the picture, in columns that fit, `most` at most."""
    if isinstance(value, dict):
        legend = value.get("legend")
        if isinstance(legend, dict):
            known = [name for name in value.get("scale", {}).get("domain", ()) if name is not None]
            label = _LETTER_EMS * font_pt * names.width(map(str, known))
            needed = max(_PER_LEGEND_COLUMN_PT, label + _SYMBOL_PT)
            columns = min(most, max(1, int(width_pt / needed)))
            legend.update(orient="top", columns=min(legend.get("columns", columns), columns))
        for key, inner in value.items():
            if key not in ("data", "datasets", "config"):
                _stack_legends(inner, width_pt, font_pt, most)
    elif isinstance(value, list):
        for inner in value:
            _stack_legends(inner, width_pt, font_pt, most)
