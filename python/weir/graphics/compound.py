"""Charts of charts: layers, and panels beside or below each other.

Altair's own classes copy all that is below them in each constructor and method, several times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import altair as alt
import polars as pl

_DIGITS = 5
"""Significant digits of a number inside a figure: finer than a pixel."""


@dataclass(frozen=True, eq=False)
class Compound:
    """Parts in one specification of Vega-Lite, and what is said of them all."""

    kind: Literal["layer", "hconcat", "vconcat", "concat"]
    parts: tuple[Chart, ...]
    said: Mapping[str, Any] = field(default_factory=dict)

    def properties(self, **properties: Any) -> Compound:
        """The same with these keys of Vega-Lite."""
        return replace(self, said={**self.said, **properties})

    def resolve_scale(self, **scales: Literal["shared", "independent"]) -> Compound:
        """The same with these scales shared by its parts, or each part's own."""
        return self.properties(resolve={"scale": scales})

    def to_dict(self, validate: bool = True) -> dict[str, Any]:
        """The whole specification; data that several parts have are in it once.

        Raises:
            jsonschema.ValidationError: `validate`, and it is none of Vega-Lite's schema.
        """
        datasets: dict[str, Any] = {}
        spec = {"$schema": alt.SCHEMA_URL, **self._inner(datasets), "datasets": datasets}
        if validate:
            _SCHEMAS[self.kind].validate(spec)
        return spec

    def _inner(self, datasets: dict[str, Any]) -> dict[str, Any]:
        context = {"datasets": datasets, "top_level": False}
        parts = [
            part._inner(datasets)
            if isinstance(part, Compound)
            else part.to_dict(validate=False, context=context)
            for part in self.parts
        ]
        said = {
            key: value.to_dict() if isinstance(value, alt.SchemaBase) else value
            for key, value in self.said.items()
        }
        return {self.kind: parts, **said}


_SCHEMAS: Mapping[str, type[alt.VegaLiteSchema]] = {
    "layer": alt.TopLevelLayerSpec,
    "hconcat": alt.TopLevelHConcatSpec,
    "vconcat": alt.TopLevelVConcatSpec,
    "concat": alt.TopLevelConcatSpec,
}

Chart = alt.Chart | Compound


def layered(*layers: alt.Chart) -> Compound:
    """Charts on top of each other, the last one uppermost."""
    return Compound("layer", layers)


def beside_each_other(*panels: Chart, spacing: float) -> Compound:
    """Charts in a row, the first one leftmost; `spacing` is in pixels."""
    return Compound("hconcat", panels, {"spacing": spacing})


def below_each_other(*panels: Chart, spacing: float) -> Compound:
    """Charts below each other, the first one uppermost; `spacing` is in pixels."""
    return Compound("vconcat", panels, {"spacing": spacing})


def in_columns(*panels: Chart, columns: int, spacing: float | Mapping[str, float]) -> Compound:
    """Charts next to each other, in rows of `columns`; `spacing` is in pixels."""
    return Compound("concat", panels, {"columns": columns, "spacing": spacing})


def inline(frame: pl.DataFrame) -> alt.InlineData:
    """`frame` as the data of a chart: CSV, which is half the size of JSON.

    Floats are shortened; NaN and infinity are missing, as null is.
    """
    floats = [name for name, kind in frame.schema.items() if kind.is_float()]
    shortened = frame.with_columns(
        pl.when(pl.col(name).is_finite()).then(pl.col(name).round_sig_figs(_DIGITS)).alias(name)
        for name in floats
    )
    numbers = {name: "number" for name, kind in frame.schema.items() if kind.is_numeric()}
    texts = {name: "string" for name in frame.columns if name not in numbers}
    kind = alt.CsvDataFormat(type="csv", parse={**numbers, **texts})
    return alt.InlineData(values=shortened.write_csv(), format=kind)
