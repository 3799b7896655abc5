"""`weir list`: controllers, queues, scenarios, studies, metrics and more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group

from weir import _native
from weir.base.errors import InputError, unknown
from weir.base.grid import Grid
from weir.cli import options, output, screen
from weir.cli.help import Verb
from weir.scenario import source

if TYPE_CHECKING:
    from weir.results.metrics import Metric

_HELP = (
    "Kinds: controllers, stacks, recoveries, route_policies, queues, feedback, impairments, "
    "topologies, workloads, contenders, scenarios, studies, suites, metrics."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir list

  weir list controllers

  weir list metrics --json"""

Item = dict[str, Any]


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command("list", help=_HELP, epilog=_EXAMPLES)(list_)


def list_(
    kind: Annotated[
        str | None, typer.Argument(metavar="KIND", help="Only this kind.", show_default="all")
    ] = None,
    json: options.Json = False,
) -> None:
    """Prints one kind, or all."""
    kinds = {**_from_rust(), **_FROM_PYTHON}
    if kind is not None and kind not in kinds:
        raise InputError(unknown("kind", kind, kinds))
    wanted = list(kinds) if kind is None else [kind]
    if json:
        output.print_json("list", [{"kind": k, **item} for k in wanted for item in kinds[k]()])
    else:
        screen.show(Group(*(_grid(k, kinds[k]()).rich() for k in wanted)))


def _from_rust() -> dict[str, Callable[[], list[Item]]]:
    catalogue: dict[str, list[Item]] = _native.catalogue()
    catalogue["controllers"].append(_IN_PYTHON)
    return {kind: lambda items=items: items for kind, items in catalogue.items()}  # type: ignore[misc]


_IN_PYTHON: Item = {
    "name": "FILE.py:CLASS",
    "description": "your own: a weir.CongestionControl in FILE.py, as in weir compare reno "
    "mine.py:Mine (docs/controllers-python.md); weir conform rfc9743 --stack mine.py:Mine judges "
    "it by RFC 9743",
    "parameters": "attribute=value,…",
    "examples": ["mine.py:Mine", "mine.py:Mine(beta=0.7)"],
}
"""Not in the catalogue, because the catalogue's names can be run unchanged."""


def _scenarios() -> list[Item]:
    return [
        {"name": name, "description": source.read(name).effective().description}
        for name in source.library()
    ]


def _studies() -> list[Item]:
    from weir.studies import catalogue  # slow to import, like the metrics

    return [
        {"name": study.name, "description": study.description}
        for study in catalogue.studies().values()
    ]


def _suites() -> list[Item]:
    from weir.conform.cases.suites import suites

    return [
        {
            "name": suite.name,
            "description": f"{suite.title}: {len(suite.cases)} cases from {suite.source}",
        }
        for suite in suites().values()
    ]


def _metrics() -> list[Item]:
    from weir.results import metrics

    return [
        {"name": metric.name, "unit": _unit(metric), "description": metric.meaning}
        for metric in metrics.METRICS
    ]


def _unit(metric: Metric) -> str:
    """Returns the unit in tables and JSON; percentages are only for people."""
    return "ratio" if metric.unit == "%" else metric.unit


def _contenders() -> list[Item]:
    from weir.contenders import catalogue

    return catalogue.rows()


_FROM_PYTHON: dict[str, Callable[[], list[Item]]] = {
    "contenders": _contenders,
    "scenarios": _scenarios,
    "studies": _studies,
    "suites": _suites,
    "metrics": _metrics,
}


def _grid(kind: str, items: list[Item]) -> Grid:
    detail = next(
        (key for key in ("parameters", "unit") if any(item.get(key) for item in items)), None
    )
    lacking = "missing" if any("missing" in item for item in items) else None
    keys = [key for key in ("name", detail, "description", lacking) if key]
    rows = [[str(item[key] or "") for key in keys] for item in items]
    headers = ["what it is" if key == "description" else key for key in keys]
    return Grid(kind, headers, rows, names=3)
