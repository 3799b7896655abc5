"""Text and expressions of a study's description: Jinja over the names that the study defines."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from jinja2.environment import TemplateExpression

from weir.base.grid import listed
from weir.cells import claims
from weir.cells.cells import digits, interval_text
from weir.cells.protocol import capitalised
from weir.report.html import slug
from weir.statistics.intervals import Estimate, mean_interval

Scope = Mapping[str, Any]
"""Values by name: constants of the study, its size, its cells, its functions."""

Entry = Mapping[str, Any]
"""One table of a description, as TOML has it."""

_ENV = Environment(  # noqa: S701 -- plain text; what makes HTML of it escapes it
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_ENV.filters |= {
    "digits": lambda value: "unknown" if value is None else digits(value),
    "interval": interval_text,
    "percent": lambda value, places=0: f"{value:.{places}%}",
    "g": lambda value: f"{value:g}",
    "fixed": lambda value, places: f"{value:.{places}f}",
    "listed": listed,
    "slug": slug,
    "capitalised": capitalised,
}
_ENV.globals |= {
    "abs": abs,
    "above": claims.above,
    "below": claims.below,
    "decided": claims.decided,
    "infinite": math.inf,
    "within": claims.within,
    "ratio": claims.ratio,
    "over": claims.over,
    "ranked": lambda cells, column: sorted(
        cells.rows(), key=lambda row: -(cells.mean(row, column) or 0.0)
    ),
    "size_of": claims.size_of,
    "estimate": lambda mean, n=1: Estimate(mean, None, None, n),
    "mean_of": mean_interval,
    "nothing": Estimate(None, None, None, 0),
    "max_by": lambda items, key: max(items, key=lambda item: item[key]),
    "min_by": lambda items, key: min(items, key=lambda item: item[key]),
    "zip": zip,
    "len": len,
    "float": float,
    "int": int,
    "min": min,
    "max": max,
    "sorted": sorted,
    "str": str,
    "verdict_of": claims.verdict_of,
}


@cache
def _expression(text: str) -> TemplateExpression:
    return _ENV.compile_expression(text, undefined_to_none=False)


@cache
def _template(text: str) -> Template:
    return _ENV.from_string(text)


def evaluated(value: Any, scope: Scope) -> Any:
    """Returns the value of an expression; what is no text stands for itself."""
    return _expression(value)(scope) if isinstance(value, str) else value


def filled(text: str, scope: Scope) -> str:
    """Returns a text with its expressions filled in and white space as single spaces."""
    return " ".join((_template(text).render(scope) if "{" in text else text).split())


def sentences(template: str, scope: Scope) -> list[str]:
    """Returns the paragraphs of a text, which empty lines separate."""
    parts = _template(template).render(scope).split("\n\n")
    return [_in_line(part) for part in parts if part.strip()]


def _in_line(text: str) -> str:
    """White space as single spaces, with none before a mark of punctuation."""
    return re.sub(r" ([,.;)])(?= |$)", r"\1", " ".join(text.split()))


def expanded(entry: Entry, scope: Scope) -> Iterator[dict[str, Any]]:
    """Yields a scope per iteration of an entry: `for` names lists, `let` values, `when` a filter.

    A later list may use the names of earlier ones; `"a, b" = …` takes pairs apart.
    """
    for own in _loops(list(entry.get("for", {}).items()), dict(scope)):
        for name, text in entry.get("let", {}).items():
            own[name] = evaluated(text, own)
        if evaluated(entry.get("when", True), own):
            yield own


def _loops(loops: list[tuple[str, Any]], scope: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if not loops:
        yield dict(scope)
        return
    (names, values), *rest = loops
    keys = names.split(", ")
    for value in evaluated(values, scope):
        own = dict(zip(keys, value, strict=True)) if len(keys) > 1 else {names: value}
        yield from _loops(rest, {**scope, **own})
