"""Expressions over the metrics of a run, as `share("copa")` or `goodput - old(goodput)`.

The table in docs/search/README.md says what each part is. A run without a value of one part has
none of the whole.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

import polars as pl

from weir import _native
from weir.base.errors import InputError, unknown
from weir.results import metrics

Value = float | None

_UNITS = ("mbps", "ms", "s", "ratio", "bytes", "rpm", "mbps_per_s")
_BINARY: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_UNARY: Mapping[str, Callable[[float], float]] = {
    "abs": abs,
    "log": math.log,
    "sqrt": math.sqrt,
}
_JOINS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "max": max,
    "mean": fmean,
    "sum": math.fsum,
}
_OLD = "old"
_OF_RUN = ("goodput_mbps", "throughput_mbps", "utilisation", "jain_index")
_IF_COMPLETED = ("fct_s", "slowdown")


@dataclass(frozen=True, eq=False)
class Observation:
    """One run, and the run of the reference with the same seed."""

    flows: Sequence[Mapping[str, Any]]
    link: Mapping[str, Any]
    run: Mapping[str, Any]
    tables: Mapping[str, pl.DataFrame]
    old: Observation | None = None

    @classmethod
    def of(cls, tables: Mapping[str, pl.DataFrame], old: Observation | None = None) -> Observation:
        """A run from its tables."""
        links = tables["links"].to_dicts()
        link = next((link for link in links if link["monitored"]), links[0] if links else {})
        summary = tables["summary"].row(0, named=True)
        return cls(tables["flows"].to_dicts(), link, summary, tables, old)

    def metric(self, name: str) -> Value:
        """A metric of the run, by the expression that defines it."""
        if not self.tables:
            known: Value = self.run[name]
            return known
        own = metrics.BY_NAME[name]
        if own.table == "metrics":
            parts = {part: self.metric(part) for part in own.value.meta.root_names()}
            return _selected(pl.DataFrame([parts], dict.fromkeys(parts, pl.Float64)), own.value)
        if own.total is not None or own.table in ("runs", "sharing"):
            value = own.value if own.total is None else own.total
            return _selected(self.tables["summary"], value)
        found = _selected(self.tables["flows"], own.value)
        if found is None and own.pooled is not None:
            return _selected(self.tables["requests"], own.pooled)
        return found


_Part = Callable[[Observation], Any]
"""What a part of an expression is in a run: a number, None, or a list of them by flow."""


@dataclass(frozen=True)
class Expression:
    """A checked expression: `value` is one number per run."""

    text: str
    has_reference: bool
    """Whether it needs the run of a reference."""
    _whole: _Part

    @classmethod
    def parse(cls, text: str) -> Expression:
        """Reads an expression.

        Raises:
            InputError: it is not valid; the message says what is allowed.
        """
        tree = _tree(text)
        if tree is None:
            raise InputError(f"{text}: not an expression; write it as goodput - 2 * rtt")
        return cls._of(text, tree)

    @classmethod
    def bound(cls, text: str) -> Expression:
        """Reads `queue_delay_ms_p95 < 50`: the value is by how much a run is beyond the bound.

        Raises:
            InputError: it is no comparison of two expressions.
        """
        match _tree(text):
            case ast.Compare(left, [ast.Lt() | ast.LtE()], [right]):
                return cls._of(text, ast.BinOp(left, ast.Sub(), right))
            case ast.Compare(left, [ast.Gt() | ast.GtE()], [right]):
                excess = ast.BinOp(left, ast.Sub(), right)
                return cls._of(text, ast.UnaryOp(ast.USub(), excess))
        raise InputError(f"{text}: not a bound; write it as 'queue_delay_ms_p95 < 50'")

    @classmethod
    def _of(cls, text: str, tree: ast.expr) -> Expression:
        has_reference = any(isinstance(n, ast.Name) and n.id == _OLD for n in ast.walk(tree))
        return cls(text.strip(), has_reference, _part(text, tree))

    def value(self, seen: Observation) -> Value:
        """Its value in a run; None if the run has none."""
        try:
            found = self._whole(seen)
        except (ZeroDivisionError, OverflowError, ValueError, TypeError):  # such as of a list
            return None
        if isinstance(found, list) or found is None or isinstance(found, complex):
            return None
        return float(found) if math.isfinite(found) else None


def _tree(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None


def _part(text: str, node: ast.expr) -> _Part:
    """What a part stands for; refuses what is not in the table of docs/search/README.md."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return lambda _: number
        case ast.Name(id=name):
            full = _full(name)
            if full is None:
                raise InputError(f"{text}: {unknown('metric', name, metrics.BY_NAME)}")
            return partial(_metric, full)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _applied(_BINARY[type(op)], _part(text, left), _part(text, right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _applied(operator.neg, _part(text, operand))
        case ast.Attribute(value=ast.Name(id="flows" | "links" | "runs" as table), attr=column):
            return partial(_column, table, column)
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as args, keywords=[]):
            return _call(text, name, args)
    raise InputError(
        f"{text}: {ast.unparse(node)} is not allowed; allowed are metrics, numbers, "
        "+ - * / **, flows.COLUMN, and functions as share(…) and max(…)"
    )


def _call(text: str, name: str, args: Sequence[ast.expr]) -> _Part:
    is_ours = name in (_OLD, *_JOINS, *_UNARY)
    match args:
        case [ast.Constant(value=str() as flow)] if not is_ours and not name.startswith("_"):
            return partial(_of_flows, name, flow)
    if not is_ours or (name not in _JOINS and len(args) > 1):
        known = ", ".join((_OLD, "share", *_JOINS, *_UNARY))
        raise InputError(f"{text}: there is no function {name!r} like this; there are: {known}")
    parts = [_part(text, one) for one in args]
    if name == _OLD:
        return lambda seen: None if seen.old is None else parts[0](seen.old)
    return lambda seen: _joined(name, [part(seen) for part in parts])


def _applied(function: Callable[..., float], *parts: _Part) -> _Part:
    def value(seen: Observation) -> Any:
        values = [part(seen) for part in parts]
        return None if None in values else function(*values)

    return value


def _joined(name: str, values: Sequence[Any]) -> Value:
    flat = [one for each in values for one in (each if isinstance(each, list) else [each])]
    if None in flat:
        return None
    return _JOINS[name](flat) if name in _JOINS else _UNARY[name](flat[0])


def _full(name: str) -> str | None:
    """The name of a metric, with its unit if that was left out."""
    tried = (name, *(f"{name}_{unit}" for unit in _UNITS))
    return next((one for one in tried if one in metrics.BY_NAME), None)


def _metric(name: str, seen: Observation) -> Value:
    # What a row has already needs no data frames, which take longer than a short run.
    if name in _OF_RUN:
        return seen.run.get(name)
    if metrics.BY_NAME[name].table == "links":
        return seen.link.get(name)
    if len(seen.flows) == 1 and name in seen.flows[0]:
        is_there = name not in _IF_COMPLETED or seen.flows[0]["completed"]
        return seen.flows[0][name] if is_there else None
    return seen.metric(name)


def _selected(frame: pl.DataFrame, value: pl.Expr) -> Value:
    """A metric's value; None where a table does not have it, as those of `weir test` do."""
    if frame.is_empty() or not set(frame.columns).issuperset(value.meta.root_names()):
        return None
    found: Value = frame.select(value.cast(pl.Float64).alias("value")).item()
    return found


def _column(table: str, column: str, seen: Observation) -> Value | list[Value]:
    rows = {"flows": seen.flows, "links": [seen.link], "runs": [seen.run]}[table]
    known = rows[0] if rows else {}
    if column not in known:
        raise InputError(unknown(f"column of {table}", column, known))
    values = [row[column] for row in rows]
    return values if table == "flows" else values[0]


def _of_flows(name: str, flow: str, seen: Observation) -> Value:
    own = [row for row in seen.flows if flow in _names(row)]
    if not own:
        raise InputError(unknown("flow", flow, dict.fromkeys(str(r["name"]) for r in seen.flows)))
    if name == "share":
        whole = math.fsum(row["goodput_mbps"] or 0.0 for row in seen.flows)
        part = math.fsum(row["goodput_mbps"] or 0.0 for row in own)
        return part / whole if whole else None
    column = next((c for c in (name, _full(name)) if c in own[0]), None)
    if column is None:
        raise InputError(unknown("column of flows", name, own[0]))
    values = [row[column] for row in own if row[column] is not None]
    return fmean(values) if values else None


def _names(flow: Mapping[str, Any]) -> tuple[str, ...]:
    """By which names a flow is found: `flow0`, `rack/copa(delta=1)`, `copa(delta=1)`, `copa`."""
    stack = str(flow["stack"])
    _, _, controller, algorithm = _native.stack_parts(stack)
    return str(flow["name"]), stack, controller, algorithm or "", controller.partition("(")[0]
