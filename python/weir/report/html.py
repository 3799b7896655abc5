"""A report as one HTML file that needs nothing else: no server, no network, not even scripts.

Every figure is embedded as a static picture. Where scripts run, it is replaced by the live chart
of the same specification. A content security policy forbids the page to load anything.
"""

from __future__ import annotations

import base64
import json
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from typing import Any

import vl_convert
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from weir.animation import Animation
from weir.plots import Figure
from weir.report.model import Report

_ASSETS = files("weir.report") / "assets"


def render(report: Report) -> str:
    """The whole page."""
    figures = [figure for section in report.sections for figure in section.figures]
    with ThreadPoolExecutor() as pool:  # the converter works outside Python's lock
        script = pool.submit(_script, figures)
        pictures = dict(zip((f.name for f in figures), pool.map(_picture, figures), strict=True))
    page: str = _template("report.html.j2").render(
        report=report,
        style=Markup(_asset("style.css")),  # noqa: S704 - our own file
        script=script.result(),
        pictures=pictures,
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
    return Markup(_vega() + _asset("enhance.js"))  # noqa: S704 - from the packages


@cache
def _template(name: str) -> Any:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["slug"] = slug
    environment.filters["unbroken"] = unbroken
    return environment.from_string(_asset(name))


@cache
def _vega() -> str:
    """Vega, Vega-Lite and vega-embed, as the installed converter ships them."""
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


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
