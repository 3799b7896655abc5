"""A figure: its picture, what to look for in it, and the numbers and runs that it is made of."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from html import escape
from pathlib import Path
from typing import Any, Literal

import polars as pl

from weir.base.disk import write_bytes
from weir.base.errors import InputError
from weir.base.extras import imported
from weir.base.grid import cautioned
from weir.base.plain import plain_lines
from weir.graphics import names, theme
from weir.graphics.chart import SCHEMA, Picture, Spec
from weir.graphics.explore import Explorer
from weir.graphics.paper import Paper
from weir.results.store import slug

Format = Literal["png", "svg", "pdf"]
FORMATS: tuple[Format, ...] = ("png", "svg", "pdf")

_VEGA_LITE = ".".join(SCHEMA.rpartition("/v")[2].split(".")[:2])
_MIME = f"application/vnd.vegalite.v{_VEGA_LITE.partition('.')[0]}+json"
_PNG_SCALE = 2
_PAPER_PPI = 300

check: Callable[[Spec], None] | None = None
"""Checks each specification against the schema of Vega-Lite: tests set it, it takes long."""


@dataclass(frozen=True, eq=False)
class Figure:
    """One picture. `runs` are the ids of the runs whose numbers it shows.

    `chart` may be a function: a page that draws from `explorer` does not call it.
    """

    name: str
    title: str
    caption: str
    chart: Picture | Callable[[], Picture]
    data: pl.DataFrame
    runs: tuple[int, ...] = ()
    caution: str = ""
    """What to bear in mind with every number in it; stands above the picture."""
    explorer: Callable[[], Explorer | None] | None = None
    """Makes the same as time series, which a page draws itself."""
    paper: Paper | None = None
    """The size in files."""

    @cached_property
    def spec(self) -> Spec:
        """The complete Vega-Lite specification, data included."""
        picture = self.chart() if callable(self.chart) else self.chart
        spec = {**picture.spec(), "config": theme.config()}
        if check is not None:
            check(spec)
        names.complete(spec)
        spec["description"] = self.alt
        if self.caution:
            spec["title"] = {"text": self.caution, "anchor": "start", "color": theme.WARN}
        plain: Spec = _plain_texts(spec)
        return plain if self.paper is None else self.paper.fit(plain, _drawn_px)

    @property
    def alt(self) -> str:
        """What stands in for the picture where it cannot be seen."""
        return ". ".join(filter(None, (self.title, self.caution, self.caption)))

    def prerender(self) -> None:
        """Begins with the SVG, which takes the converter a while outside of Python's lock."""
        _ = self._drawing

    def svg(self) -> str:
        """The picture as SVG."""
        return self._drawing.result()

    def png(self) -> bytes:
        """The picture as PNG, at twice its nominal size."""
        size = {"scale": _PNG_SCALE} if self.paper is None else {"ppi": _PAPER_PPI}
        return bytes(converter().vegalite_to_png(self._json, vl_version=_VEGA_LITE, **size))

    def pdf(self) -> bytes:
        """The picture as PDF, for papers."""
        return bytes(converter().vegalite_to_pdf(self._json, vl_version=_VEGA_LITE))

    def save(self, directory: Path, formats: Sequence[str]) -> list[Path]:
        """Writes `name.format` for each of `formats` into an existing directory."""
        paths = []
        for kind in formats:
            path = directory / f"{slug(self.name)}.{kind}"
            write_bytes(path, self._rendered(kind))
            paths.append(path)
        return paths

    def _rendered(self, kind: str) -> bytes:
        if kind == "svg":
            return self.svg().encode()
        if kind == "png":
            return self.png()
        if kind == "pdf":
            return self.pdf()
        raise ValueError(f"format {kind!r}: a figure can be written as {', '.join(FORMATS)}")

    @cached_property
    def _drawing(self) -> Future[str]:
        return _drawer().submit(self._drawn)

    def _drawn(self) -> str:
        drawn = str(converter().vegalite_to_svg(self._json, vl_version=_VEGA_LITE))
        if self.paper is None:
            return drawn
        return re.sub(
            r'(<svg[^>]*?\swidth="[\d.]+)(" height="[\d.]+)"', r'\1pt\2pt"', drawn, count=1
        )

    @cached_property
    def _json(self) -> str:
        return json.dumps(self.spec)

    def _repr_mimebundle_(self, *_: object, **__: object) -> dict[str, Any]:
        """Notebooks draw the figure itself; without the converter, those that know Vega-Lite do."""
        try:
            return {"image/svg+xml": self.svg()}
        except InputError:
            return {_MIME: self.spec}


class Figures(list[Figure]):
    """Several figures, which a notebook shows below each other."""

    def _repr_html_(self) -> str:
        for figure in self:
            figure.prerender()
        return "".join(map(_html, self))


def converter() -> Any:
    """The package that draws pictures in files.

    Raises:
        InputError: it is not installed.
    """
    return imported("vl_convert", "figures", "a picture in a file")


def _drawn_px(spec: dict[str, Any]) -> float:
    """The width of a picture."""
    drawn = converter().vegalite_to_svg(json.dumps(spec), vl_version=_VEGA_LITE)
    found = re.search(r'<svg[^>]*\swidth="([\d.]+)"', drawn)
    return float(found[1]) if found else 0.0


def _html(figure: Figure) -> str:
    title = cautioned(figure.title, figure.caution)
    try:
        picture = base64.b64encode(figure.svg().encode()).decode()
        shown = f'<img src="data:image/svg+xml;base64,{picture}" alt="{escape(figure.alt)}">'
    except InputError as missing:
        shown = f"<p>{escape(str(missing))}</p>"
    return (
        f"<figure><figcaption><b>{escape(title)}</b></figcaption>"
        f"{shown}<figcaption>{escape(figure.caption)}</figcaption></figure>"
    )


@cache
def _drawer() -> ThreadPoolExecutor:
    """One thread: the converter has no more."""
    return ThreadPoolExecutor(1, thread_name_prefix="weir-draw")


def _plain_texts(value: Any) -> Any:
    """A specification whose texts do nothing: control characters abort the process that draws."""
    if isinstance(value, str):
        return plain_lines(value)
    if isinstance(value, dict):
        return {_plain_texts(key): _plain_texts(inner) for key, inner in value.items()}
    return [_plain_texts(inner) for inner in value] if isinstance(value, list) else value
