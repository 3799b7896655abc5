"""Charts as specifications of Vega-Lite, which a page or a converter draws.

What a key means is said at https://vega.github.io/vega-lite/docs. Tests check each specification
against the schema; there is no other description of the grammar here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import polars as pl

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
_DIGITS = 5
"""Significant digits of a number inside a figure: finer than a pixel."""
_TYPES = {"Q": "quantitative", "N": "nominal", "O": "ordinal"}
_ENDS = {"x2", "y2"}
"""Channels whose type is that of the channel of the other end."""

Spec = dict[str, Any]
"""A part of a specification: an axis, a scale, a channel, a whole chart."""
Shown = str | Spec
"""A channel, or the column that it shows, as of `channel`."""


def channel(column: str, **options: Any) -> Spec:
    """What a chart shows of a column: `channel("t_s:Q", title="time, s")`.

    The letter is the column's kind: Q for a quantity, N for names, O for names in an order.
    """
    name, _, kind = column.rpartition(":")
    return {"field": name, "type": _TYPES[kind], **options}


@dataclass(frozen=True, eq=False)
class Chart:
    """Marks of one kind, of one table. Each method makes another chart."""

    data: Table
    said: Spec = field(default_factory=dict)

    def mark(self, kind: str, **options: Any) -> Chart:
        """What stands for a row: a line, a point, a rule, a text, ..."""
        return self.properties(mark={"type": kind, **options})

    def encode(self, **channels: Shown | Sequence[Shown]) -> Chart:
        """What the marks show: position, colour, size, ..., in addition to what is there."""
        shown = {name: _shown(one) for name, one in channels.items()}
        for end in _ENDS & shown.keys():
            shown[end].pop("type", None)
        return self.properties(encoding={**self.said.get("encoding", {}), **shown})

    def where(self, condition: str) -> Chart:
        """The rows for which an expression of Vega's language holds."""
        return self.properties(transform=[{"filter": condition}])

    def properties(self, **properties: Any) -> Chart:
        """The same with these keys of Vega-Lite."""
        return replace(self, said={**self.said, **properties})

    def spec(self) -> Spec:
        """The whole specification, with its data."""
        return _whole(self)

    def part(self, datasets: Spec) -> Spec:
        """The specification as a part of another, whose data are in `datasets`."""
        datasets[self.data.name] = self.data.csv
        return {"data": self.data.reference, **self.said}


@dataclass(frozen=True, eq=False)
class Compound:
    """Parts in one specification, and what is said of them all."""

    kind: Literal["layer", "hconcat", "vconcat", "concat"]
    parts: tuple[Picture, ...]
    said: Spec = field(default_factory=dict)

    def properties(self, **properties: Any) -> Compound:
        """The same with these keys of Vega-Lite."""
        return replace(self, said={**self.said, **properties})

    def resolve_scale(self, **scales: Literal["shared", "independent"]) -> Compound:
        """The same with these scales shared by its parts, or each part's own."""
        return self.properties(resolve={"scale": scales})

    def spec(self) -> Spec:
        """The whole specification; data that several parts have are in it once."""
        return _whole(self)

    def part(self, datasets: Spec) -> Spec:
        """The specification as a part of another, whose data are in `datasets`."""
        return {self.kind: [part.part(datasets) for part in self.parts], **self.said}


Picture = Chart | Compound


def layered(*layers: Chart) -> Compound:
    """Charts on top of each other, the last one uppermost."""
    return Compound("layer", layers)


def beside_each_other(*panels: Picture, spacing: float) -> Compound:
    """Charts in a row, the first one leftmost; `spacing` is in pixels."""
    return Compound("hconcat", panels, {"spacing": spacing})


def below_each_other(*panels: Picture, spacing: float) -> Compound:
    """Charts below each other, the first one uppermost; `spacing` is in pixels."""
    return Compound("vconcat", panels, {"spacing": spacing})


def in_columns(*panels: Picture, columns: int, spacing: float | Mapping[str, float]) -> Compound:
    """Charts next to each other, in rows of `columns`; `spacing` is in pixels."""
    return Compound("concat", panels, {"columns": columns, "spacing": spacing})


@dataclass(frozen=True, slots=True)
class Table:
    """The data of a chart, by the name that they have in a specification."""

    name: str
    csv: str
    reference: Spec


def inline(frame: pl.DataFrame) -> Table:
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
    csv = shortened.write_csv()
    name = f"data-{hashlib.sha256(csv.encode()).hexdigest()[:32]}"
    kind = {"type": "csv", "parse": {**numbers, **texts}}
    return Table(name, csv, {"name": name, "format": kind})


def _shown(one: Shown | Sequence[Shown]) -> Any:
    if isinstance(one, str):
        return channel(one)
    return dict(one) if isinstance(one, dict) else [_shown(each) for each in one]


def _whole(picture: Picture) -> Spec:
    datasets: Spec = {}
    return {"$schema": SCHEMA, **picture.part(datasets), "datasets": datasets}
