"""Options of the command line, from the table of options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import typer

from weir.base import options

F = TypeVar("F", bound=Callable[..., None])


def option(table: type, name: str, **rest: Any) -> Any:
    """Returns what Typer needs to know of an option of the table."""
    one = options.of(table)[name]
    names = [options.flag(name), *([one.short] if one.short else [])]
    settings: dict[str, Any] = {
        "metavar": one.form,
        "help": one.help(),
        "min": one.least,
        "show_default": one.shown_default() or True,
        "rich_help_panel": one.group,
    }
    return typer.Option(*names, **{**settings, **rest})


def taking(*tables: type) -> Callable[[F], F]:
    """Gives a verb that takes `**given` the options of the tables, after its arguments.

    Options that the verb declares itself are left out.
    """

    def decorate(verb: F) -> F:
        hints = get_type_hints(verb, include_extras=True)
        signature = inspect.signature(verb)
        own = [
            one.replace(annotation=hints[one.name])
            for one in signature.parameters.values()
            if one.kind is not one.VAR_KEYWORD
        ]
        names = {one.name for one in own}
        made = [one for table in tables for one in _made(table) if one.name not in names]
        made = sorted([*own, *made], key=lambda one: (one.kind, one in own))
        verb.__signature__ = signature.replace(parameters=made)  # type: ignore[attr-defined]
        verb.__annotations__ = {one.name: one.annotation for one in made} | {"return": None}
        return verb

    return decorate


def _made(table: type) -> Iterator[inspect.Parameter]:
    known = options.of(table)
    for one in options.parameters(table, get_type_hints(table)):
        if not known[one.name].python_only:
            annotated: Any = Annotated
            kind = annotated[_kind(one.annotation), option(table, one.name)]
            yield one.replace(annotation=kind)


def _kind(hint: Any) -> Any:
    """Returns the type that Typer reads: of text or a path, the path."""
    if Path not in get_args(hint):
        return hint
    return Path | None if type(None) in get_args(hint) else Path
