"""Spaces of scenarios: keys with ranges and lists, and the text of each key at a point.

docs/search/README.md has a table of ranges. A key whose name ends with `?` is left out of half of
the scenarios, and of the default one. A point has one number from 0 to 1 per range.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from weir import _native
from weir.base import bounded
from weir.base.errors import InputError
from weir.base.options import MEASUREMENT, Option
from weir.scenario.source import Overrides, is_stack, split_list

option = partial(Option, group=MEASUREMENT)
"""An option of a search."""
Bounds = Annotated[
    Path | None,
    option("File of bounds: keys of the scenario with ranges and lists.", metavar="FILE"),
]
Point = tuple[float, ...]
"""One number from 0 to 1 per gene."""
Templates = Mapping[str, str | Sequence[str]]
"""Keys of a scenario with ranges in their values, or with lists of values."""
Keys = Mapping[str, str]
"""Keys of a scenario with their values as text."""

_DIGITS = 3
_PLACE = re.compile(r"\{([^{}=]*)\}")
_RANGE = re.compile(r"(\S+?)\.\.(\S+?)(?:\s+(log|linear))?(?:\s+x(\d+)(?:\.\.(\d+))?)?")
_NUMBER = re.compile(r"([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)([a-zA-Z%]*)")
_KINDS: Mapping[str, Literal["time", "rate", "size"]] = {
    **dict.fromkeys(("ns", "us", "ms", "s", "min", "h"), "time"),
    **dict.fromkeys(("bit", "kbit", "mbit", "gbit", "tbit"), "rate"),
    **dict.fromkeys(("b", "kb", "mb", "gb", "kib", "mib", "gib"), "size"),
}
_SHOWN: Mapping[str, Sequence[tuple[str, float]]] = {
    "time": (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)),
    "rate": (("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)),
    "size": (("mb", 1e6), ("kb", 1e3), ("b", 1.0)),
}
_LOGARITHMIC = (*_KINDS, "bdp", "p")
_MOST_ITEMS = 2000


@dataclass(frozen=True, slots=True)
class Gene:
    """One number or choice."""

    low: float = 0.0
    high: float = 0.0
    unit: str = ""
    """Of a quantity its kind, else what is written behind the number."""
    is_log: bool = False
    is_whole: bool = False
    choices: tuple[str, ...] = ()
    is_switch: bool = False
    """Whether it decides if a key is there."""

    @property
    def is_number(self) -> bool:
        """Whether near points are alike."""
        return not self.choices

    def value(self, place: float) -> float:
        """The number at a place from 0 to 1, as it is written."""
        place = min(1.0, max(0.0, place))
        if self.is_whole and not self.is_log:
            return min(self.high, self.low + math.floor(place * (self.high - self.low + 1)))
        span = self.high / self.low if self.is_log else self.high - self.low
        found = self.low * span**place if self.is_log else self.low + place * span
        rounded = round(found) if self.is_whole else float(f"{found:.{_DIGITS}g}")
        return min(self.high, max(self.low, rounded))

    def text(self, place: float) -> str:
        """What stands in the scenario at a place from 0 to 1."""
        if self.choices:
            return self.choices[min(len(self.choices) - 1, int(place * len(self.choices)))]
        return self.spelled(self.value(place))

    def spelled(self, value: float) -> str:
        """A number with its unit."""
        shown = _SHOWN.get(self.unit)
        if shown is None:
            return f"{plain(value)}{self.unit}"
        name, factor = next((one for one in shown if value >= one[1]), shown[-1])
        return f"{plain(float(f'{value / factor:.12g}'))}{name}"


@dataclass(frozen=True, slots=True)
class Varied:
    """A key, and its value with ranges in it."""

    key: str
    template: str
    first: int
    """The position of its first gene."""
    parts: Sequence[str | int | range]
    """Text, the position of a gene, or those of a list's items, whose number is before them."""
    switch: int | None = None

    @property
    def default(self) -> str | None:
        """The stack without the parameters that vary; None for other keys."""
        if not is_stack(self.key) or self.template.startswith("{"):
            return None
        text = re.sub(r"(?:[\w-]+=)?\{[^{}]*\}", "", self.template)
        return re.sub(r"\(,*\)", "", re.sub(r",+(?=[,)])|(?<=\(),+", "", text))


@dataclass(frozen=True)
class Space:
    """Keys that vary, and their genes."""

    keys: tuple[Varied, ...]
    genes: tuple[Gene, ...]

    def at(self, point: Sequence[float]) -> dict[str, str]:
        """The keys of a scenario at a point."""
        found = {}
        for one in self.keys:
            if one.switch is None or point[one.switch] >= 0.5:
                found[one.key] = "".join(self._parts(one, point))
        return found

    def default(self) -> dict[str, str]:
        """The keys that stand for what a user has who does not tune: stacks without parameters."""
        return {one.key: one.default for one in self.keys if one.default is not None}

    def name(self, position: int) -> str:
        """The key of a gene, with the template where that has more than the range."""
        varied = next(one for one in reversed(self.keys) if one.first <= position)
        return varied.key if len(varied.parts) == 1 else f"{varied.key} {varied.template}"

    def _parts(self, one: Varied, point: Sequence[float]) -> Iterator[str]:
        for part in one.parts:
            if isinstance(part, str):
                yield part
            elif isinstance(part, int):
                yield self.genes[part].text(point[part])
            else:
                gene, number = self.genes[part.start], part.start - 1
                count = int(self.genes[number].value(point[number]))
                values = {gene.value(point[position]) for position in part[:count]}
                yield ", ".join(map(gene.spelled, sorted(values)))


def space(keys: Templates) -> Space:
    """The space of keys with ranges; a list of values is one of them each.

    Raises:
        InputError: a range is not valid, or nothing varies.
    """
    genes: list[Gene] = []
    varied = []
    for name, value in keys.items():
        key, first = name.removesuffix("?"), len(genes)
        switch = first if name.endswith("?") else None
        if switch is not None:
            genes.append(Gene(choices=("not set", "set"), is_switch=True))
        if isinstance(value, str):
            text, parts = value, _template(key, value, genes)
        else:
            text, parts = "{" + ", ".join(value) + "}", [len(genes)]
            genes.append(Gene(choices=_choices(key, value)))
        varied.append(Varied(key, text, first, parts, switch))
    if not genes:
        raise InputError("nothing varies; give a key or a parameter a range, as in {0.5..0.9}")
    return Space(tuple(varied), tuple(genes))


def read(path: Path) -> dict[str, str | Sequence[str]]:
    """The keys of a file of bounds: dotted keys, or sections, with ranges and lists.

    Raises:
        InputError: it is no TOML, or a value is neither text nor a list.
    """
    try:
        data = tomllib.loads(bounded.read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}") from None
    return dict(_flat(path, "", data.get("space", data)))


def plain(value: float) -> str:
    """A number without an exponent, which quantities do not have."""
    return f"{value:.12f}".rstrip("0").rstrip(".")


def split(overrides: Overrides) -> tuple[dict[str, str | Sequence[str]], Overrides]:
    """The overrides that have ranges, and the others."""
    varied: dict[str, str | Sequence[str]] = {}
    for key, value in overrides:
        varied.pop(key, None)
        if _PLACE.search(value):
            varied[key] = value
    return varied, tuple(pair for pair in overrides if pair[0] not in varied)


def _flat(
    path: Path, prefix: str, data: Mapping[str, object]
) -> Iterator[tuple[str, str | Sequence[str]]]:
    for name, value in data.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _flat(path, f"{key}.", value)
        elif isinstance(value, str):
            yield key, value
        elif isinstance(value, list) and value:
            yield key, tuple(v if isinstance(v, str) else str(v).lower() for v in value)
        else:
            raise InputError(
                f"{path}: {key} = {value!r}: a range as text ('{{1ms..1s}}') or a list is needed"
            )


def _template(key: str, text: str, genes: list[Gene]) -> list[str | int | range]:
    """The parts of a value; its genes are added to `genes`."""
    parts = [
        _gene(key, part.strip(), genes) if number % 2 else part
        for number, part in enumerate(_PLACE.split(text))
    ]
    return [part for part in parts if part != ""]


def _gene(key: str, text: str, genes: list[Gene]) -> int | range:
    first = len(genes)
    found = _RANGE.fullmatch(text)
    if found is None:
        genes.append(Gene(choices=_choices(key, split_list(text))))
        return first
    gene = _range(f"{key}: {{{text}}}", found[1], found[2], found[3])
    if found[4] is None:
        genes.append(gene)
        return first
    least, most = int(found[4]), int(found[5] or found[4])
    if not 0 <= least <= most <= _MOST_ITEMS or most == 0:
        raise InputError(f"{key}: {{{text}}}: from 0 to {_MOST_ITEMS} items, as in x0..4")
    genes += [Gene(least, most, is_whole=True), *([gene] * most)]
    return range(first + 1, first + 1 + most)


def _range(place: str, low: str, high: str, scale: str | None) -> Gene:
    first, last = _NUMBER.fullmatch(low), _NUMBER.fullmatch(high)
    if first is None or last is None:
        raise InputError(f"{place}: two numbers are needed, as in {{1ms..1s}}")
    unit = last[2]
    kind = _KINDS.get(unit)
    try:
        start, end = (
            _native.parse_quantity(kind, one[0]) if kind else float(one[1]) for one in (first, last)
        )
    except ValueError as error:
        raise InputError(f"{place}: {error}") from None
    if not kind and first[2] != unit:
        raise InputError(f"{place}: both ends need the same unit")
    if not start < end:
        raise InputError(f"{place}: the first end has to be the smaller one")
    is_whole = unit in ("", "p") and not any("." in e[1] or "e" in e[1] for e in (first, last))
    is_log = scale == "log" or (scale is None and unit in _LOGARITHMIC and start > 0)
    if is_log and start <= 0:
        raise InputError(f"{place}: a logarithm needs a first end above 0")
    return Gene(start, end, kind or unit, is_log, is_whole)


def _choices(key: str, values: Sequence[str]) -> tuple[str, ...]:
    if len(values) < 2 or not all(values):
        shown = ", ".join(values)
        raise InputError(f"{key}: {{{shown}}}: neither a range (a..b) nor a list of two values")
    return tuple(values)
