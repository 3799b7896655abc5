"""Expressions over the metrics of a run, as `share("copa")` or `goodput - old(goodput)`.

| part | is |
|---|---|
| `goodput_mbps`, `goodput` | a metric of `weir list metrics`, also without its unit |
| `goodput_mbps("copa")` | a column of the flows with this name, stack or controller: mean |
| `share("copa")` | the goodput of these flows over that of all flows |
| `flows.timeouts` | a column of every flow: for `min`, `max`, `mean` and `sum` |
| `links.drops`, `runs.utilisation` | a column of the bottleneck, or of the run |
| `old(…)` | the same of the reference run with the same seed |
| `+ - * / **`, `abs`, `log`, `sqrt`, `min`, `max` | as in Python |

A run without a value of one part has none of the whole.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import polars as pl

from weir import _native
from weir.base.errors import InputError, unknown
from weir.results import metrics

Value = float | None
Values = Value | list[Value]

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
_SIDES: Mapping[type[ast.cmpop], int] = {ast.Lt: 1, ast.LtE: 1, ast.Gt: -1, ast.GtE: -1}


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
            return _selected(
                self.tables["summary"], own.total if own.total is not None else own.value
            )
        found = _selected(self.tables["flows"], own.value)
        if found is None and own.pooled is not None:
            return _selected(self.tables["requests"], own.pooled)
        return found

    def named(self, name: str) -> list[Mapping[str, Any]]:
        """The flows with a name, a stack or a controller."""
        found = [flow for flow in self.flows if name in _names(flow)]
        if not found:
            known = dict.fromkeys(str(flow["name"]) for flow in self.flows)
            raise InputError(unknown("flow", name, known))
        return found


@dataclass(frozen=True)
class Expression:
    """A checked expression: `value` is one number per run."""

    text: str
    tree: ast.expr

    @classmethod
    def parse(cls, text: str) -> Expression:
        """Reads an expression.

        Raises:
            InputError: it is not valid; the message says what is allowed.
        """
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            raise InputError(f"{text}: not an expression; write it as goodput - 2 * rtt") from None
        _check(text, tree)
        return cls(text.strip(), tree)

    @property
    def metric(self) -> metrics.Metric | None:
        """The metric, if it is one alone."""
        name = self.tree.id if isinstance(self.tree, ast.Name) else ""
        return metrics.BY_NAME.get(_full(name) or "")

    @property
    def has_reference(self) -> bool:
        """Whether it needs the run of a reference."""
        return any(isinstance(n, ast.Name) and n.id == _OLD for n in ast.walk(self.tree))

    def value(self, seen: Observation) -> Value:
        """Its value in a run; None if the run has none."""
        try:
            found = _value(self.tree, seen)
        except (ZeroDivisionError, OverflowError, ValueError):
            return None
        if isinstance(found, list) or found is None or isinstance(found, complex):
            return None
        return float(found) if math.isfinite(found) else None


@dataclass(frozen=True)
class Constraint:
    """A bound: `excess` is at most 0 where it holds."""

    text: str
    left: Expression
    right: Expression
    sign: int

    @classmethod
    def parse(cls, text: str) -> Constraint:
        """Reads `queue_delay_ms_p95 < 50`.

        Raises:
            InputError: it is no comparison of two expressions.
        """
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            tree = None
        if (
            not isinstance(tree, ast.Compare)
            or len(tree.ops) != 1
            or type(tree.ops[0]) not in _SIDES
        ):
            raise InputError(f"{text}: not a bound; write it as 'queue_delay_ms_p95 < 50'")
        sides = (tree.left, tree.comparators[0])
        for side in sides:
            _check(text, side)
        left, right = (Expression(ast.unparse(side), side) for side in sides)
        return cls(text.strip(), left, right, _SIDES[type(tree.ops[0])])

    def excess(self, seen: Observation) -> Value:
        """By how much a run is beyond the bound; None if it has no value."""
        left, right = self.left.value(seen), self.right.value(seen)
        return None if left is None or right is None else self.sign * (left - right)


def _check(text: str, node: ast.expr) -> None:
    """Refuses what is not in the table above."""
    match node:
        case ast.Constant(value=int() | float()):
            return
        case ast.Name(id=name):
            if _full(name) is None:
                raise InputError(f"{text}: {unknown('metric', name, metrics.BY_NAME)}")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            _check(text, left)
            _check(text, right)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check(text, operand)
        case ast.Attribute(value=ast.Name(id="flows" | "links" | "runs")):
            return
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as args, keywords=[]):
            _check_call(text, name, args)
        case _:
            raise InputError(
                f"{text}: {ast.unparse(node)} is not allowed; allowed are metrics, numbers, "
                "+ - * / **, flows.COLUMN, and functions as share(…) and max(…)"
            )


def _check_call(text: str, name: str, args: Sequence[ast.expr]) -> None:
    is_text = (
        len(args) == 1 and isinstance(args[0], ast.Constant) and isinstance(args[0].value, str)
    )
    if is_text and not name.startswith("_") and name not in (_OLD, *_JOINS, *_UNARY):
        return
    if (name in (_OLD, *_UNARY) and len(args) == 1) or name in _JOINS:
        for one in args:
            _check(text, one)
        return
    known = ", ".join((_OLD, "share", *_JOINS, *_UNARY))
    raise InputError(f"{text}: there is no function {name!r} like this; there are: {known}")


def _full(name: str) -> str | None:
    """The name of a metric, with its unit if that was left out."""
    tried = (name, *(f"{name}_{unit}" for unit in _UNITS))
    return next((one for one in tried if one in metrics.BY_NAME), None)


def _value(node: ast.expr, seen: Observation) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _metric(name, seen)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _value(left, seen), _value(right, seen)
            return None if a is None or b is None else _BINARY[type(op)](a, b)
        case ast.UnaryOp(operand=operand):
            inner = _value(operand, seen)
            return None if inner is None else -inner
        case ast.Attribute(value=ast.Name(id=table), attr=column):
            return _column(table, column, seen)
        case ast.Call(func=ast.Name(id=name), args=args):
            return _called(name, args, seen)
    raise AssertionError(ast.dump(node))


def _metric(name: str, seen: Observation) -> Value:
    full = _full(name) or name
    found: Value
    # What a row has already needs no data frames, which take longer than a short run.
    if full in _OF_RUN:
        found = seen.run.get(full)
    elif metrics.BY_NAME[full].table == "links":
        found = seen.link.get(full)
    elif len(seen.flows) == 1 and full in seen.flows[0]:
        is_there = full not in _IF_COMPLETED or seen.flows[0]["completed"]
        found = seen.flows[0][full] if is_there else None
    else:
        found = seen.metric(full)
    return found


def _selected(frame: pl.DataFrame, value: pl.Expr) -> Value:
    """A metric's value; None where a table does not have it, as those of `weir test` do."""
    if frame.is_empty() or not set(frame.columns).issuperset(value.meta.root_names()):
        return None
    found: Value = frame.select(value.cast(pl.Float64).alias("value")).item()
    return found


def _column(table: str, column: str, seen: Observation) -> Values:
    rows = {"flows": seen.flows, "links": [seen.link], "runs": [seen.run]}[table]
    known = rows[0] if rows else {}
    if column not in known:
        raise InputError(unknown(f"column of {table}", column, known))
    values = [row[column] for row in rows]
    return values if table == "flows" else values[0]


def _called(name: str, args: Sequence[ast.expr], seen: Observation) -> Any:
    if name == _OLD:
        return None if seen.old is None else _value(args[0], seen.old)
    if isinstance(args[0], ast.Constant) and isinstance(args[0].value, str):
        return _of_flows(name, args[0].value, seen)
    values: list[Value] = []
    for one in args:
        found = _value(one, seen)
        values += found if isinstance(found, list) else [found]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return None
    return _JOINS[name](known) if name in _JOINS else _UNARY[name](known[0])


def _of_flows(name: str, flow: str, seen: Observation) -> Value:
    own = seen.named(flow)
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
