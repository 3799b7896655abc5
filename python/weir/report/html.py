"""A report as one HTML file that needs nothing else: no server, no network, no other file.

The page draws its figures itself: uPlot those over time, Vega all others. A content security policy
forbids the page to load anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from weir.plots import Figure
from weir.report import scripts
from weir.report.animation import Animation
from weir.report.model import Report

_ASSETS = files("weir.report") / "assets"


def render(report: Report) -> str:
    """The whole page."""
    figures = [figure for section in report.sections for figure in section.figures]
    drawings = {figure.name: _drawing(figure) for figure in figures}
    kinds = {drawing.kind for drawing in drawings.values()}
    page: str = _template("report.html.j2").render(
        report=report,
        style=Markup(_style(kinds)),  # noqa: S704 - our own file
        drawings=drawings,
        scripts=[Markup(text) for text in _scripts(kinds)],  # noqa: S704
        vega=Markup(scripts.packed_vega() if "spec" in kinds else ""),  # noqa: S704
    )
    return page


@dataclass(frozen=True)
class _Drawing:
    """What a page draws a figure from. `kind` names the data of its element."""

    kind: Literal["series", "spec"]
    data: Markup


def _drawing(figure: Figure) -> _Drawing:
    explorer = figure.explorer() if figure.explorer is not None else None
    if explorer is None:
        return _Drawing("spec", _json(figure.spec))
    return _Drawing("series", _json(explorer.data))


def _style(kinds: Container[str]) -> str:
    return (_asset("uplot.min.css") if "series" in kinds else "") + _asset("style.css")


def _scripts(kinds: Container[str]) -> Iterator[str]:
    """Of each kind of drawing there is, ours; uPlot with its licence."""
    if "series" in kinds:
        licence = _asset("uplot.LICENSE").strip()
        yield f"/*! uPlot\n{licence}\n*/\n{_asset('uplot.min.js')}"
        yield _asset("explore.js")
    if "spec" in kinds:
        yield _asset("enhance.js")


def render_animation(animation: Animation) -> str:
    """The page that plays an animation."""
    page: str = _template("animation.html.j2").render(
        animation=animation,
        style=Markup(_asset("animation.css")),  # noqa: S704 - our own file
        script=Markup(_asset("animation.js")),  # noqa: S704 - our own file
        data=_json(animation.data),
    )
    return page


def render_published(values: Mapping[str, Any]) -> str:
    """The page of published numbers and ours, whose values the template names."""
    style = Markup(_asset("style.css"))  # noqa: S704 - our own file
    page: str = _template("published.html.j2").render(style=style, **values)
    return page


@cache
def _template(name: str) -> Any:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["slug"] = slug
    environment.filters["unbroken"] = with_no_break_spaces
    environment.filters["breakable"] = with_breaks_before_brackets
    return environment.from_string(_asset(name))


def slug(text: str) -> str:
    """`text` as an anchor."""
    return "-".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def with_no_break_spaces(text: str) -> str:
    """`text` with every number kept on the line of its unit."""
    return re.sub(r"(?<=[\d±–]) (?=[%±\d]|Mbit/s|ms\b|s\b)", "\N{NO-BREAK SPACE}", text)


def with_breaks_before_brackets(text: str) -> str:
    """The value of a cell, which a narrow table may break before its interval only."""
    if not re.fullmatch(r"[-−]?\d[^/]*", text):
        return text
    return text.replace(" ", "\N{NO-BREAK SPACE}").replace("\N{NO-BREAK SPACE}(", " (")


def _json(value: Any) -> Markup:
    """`value` for a script element, which nothing in it can end."""
    text = json.dumps(value, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 - escaped


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
