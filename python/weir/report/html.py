"""A report as one HTML file that needs nothing else: no server, no network, not even scripts.

Every figure is embedded as a static picture. Where scripts run, it is replaced by the live chart
of the same specification. A content security policy forbids the page to load anything.
"""

from __future__ import annotations

import base64
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from weir.animation import Animation
from weir.plots import Figure
from weir.report import scripts
from weir.report.model import Report

_ASSETS = files("weir.report") / "assets"


def render(report: Report) -> str:
    """The whole page."""
    figures = [figure for section in report.sections for figure in section.figures]
    for figure in figures:
        figure.draw_ahead()
    page: str = _template("report.html.j2").render(
        report=report,
        style=Markup(_asset("style.css")),  # noqa: S704 - our own file
        script=_script(figures),
        pictures={figure.name: _picture(figure) for figure in figures},
        specs=[(figure.name, _json(figure.spec)) for figure in figures],
    )
    return page


def render_animation(animation: Animation) -> str:
    """The page that plays an animation."""
    page: str = _template("animation.html.j2").render(
        animation=animation,
        style=Markup(_asset("animation.css")),  # noqa: S704 - our own file
        script=Markup(_asset("animation.js")),  # noqa: S704 - our own file
        data=_json(animation.data),
    )
    return page


def _script(figures: list[Figure]) -> Markup:
    if not figures:
        return Markup("")
    return Markup(scripts.vega() + _asset("enhance.js"))  # noqa: S704 - from the packages


@cache
def _template(name: str) -> Any:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["slug"] = slug
    environment.filters["unbroken"] = unbroken
    return environment.from_string(_asset(name))


def slug(text: str) -> str:
    """`text` as an anchor."""
    return "-".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def unbroken(text: str) -> str:
    """`text` with every number kept on the line of its unit."""
    return re.sub(r"(?<=[\d±–]) (?=[%±\d]|Mbit/s|ms\b|s\b)", "\N{NO-BREAK SPACE}", text)


def _picture(figure: Figure) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(figure.svg().encode()).decode()


def _json(value: Any) -> Markup:
    """`value` for a script element, which nothing in it can end."""
    text = json.dumps(value, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 - escaped


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
