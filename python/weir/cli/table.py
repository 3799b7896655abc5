"""Options of the command line, from those of functions and dataclasses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from weir.base import options
from weir.base.options import Option, Source
from weir.cli import complete

F = TypeVar("F", bound=Callable[..., None])

_COMPLETIONS = {
    "world": complete.worlds,
    "stack": complete.stacks,
    "stacks": complete.stacks,
    "wanted": complete.formats,
}
"""What the shell offers for the value of an option, by its name."""


def with_options_of(*sources: Source, without: Sequence[str] = ()) -> Callable[[F], F]:
    """Gives a verb that takes `**given` the options of functions or dataclasses.

    Left out are options that the verb declares itself, those for Python only, and `without`.
    """

    def decorate(verb: F) -> F:
        hints = get_type_hints(verb, include_extras=True)
        signature = inspect.signature(verb)
        own = [
            one.replace(annotation=hints[one.name])
            for one in signature.parameters.values()
            if one.kind is not one.VAR_KEYWORD
        ]
        shared = {one.name: one for source in sources for one in _shown(source)}
        for name in (*without, *(one.name for one in own)):
            shared.pop(name, None)
        made = sorted([*own, *shared.values()], key=lambda one: (one.kind, one in own))
        verb.__signature__ = signature.replace(parameters=made)  # type: ignore[attr-defined]
        verb.__annotations__ = {one.name: one.annotation for one in made} | {"return": None}
        return verb

    return decorate


def changed_options(source: Source, given: Mapping[str, Any]) -> Iterator[str]:
    """Yields the options of a function or dataclass that differ from their defaults, as typed."""
    for one in options.parameters(source):
        value = given.get(one.name, one.default)
        usual = list(_listed(one.default)) if isinstance(value, list) else one.default
        if value == usual or (isinstance(value, Path) and str(value) == usual):
            continue
        option = options.described(one.annotation)
        name = (option and option.flag) or options.flag(one.name)
        if isinstance(value, bool):
            yield name if value else f"--no-{name[2:]}"
        else:
            yield f"{name} {next(_listed(value), value)}"


def as_typer(verb: F) -> F:
    """Gives a verb's options the form in which Typer reads them."""
    hints = get_type_hints(verb, include_extras=True)
    signature = inspect.signature(verb)
    made = [_for_typer(p.replace(annotation=hints[p.name])) for p in signature.parameters.values()]
    verb.__signature__ = signature.replace(parameters=made)  # type: ignore[attr-defined]
    verb.__annotations__ = {one.name: one.annotation for one in made} | {"return": None}
    return verb


def _shown(source: Source) -> list[inspect.Parameter]:
    known = options.of(source)
    return [one for one in options.parameters(source) if not known[one.name].python_only]


def _for_typer(one: inspect.Parameter) -> inspect.Parameter:
    option = options.described(one.annotation)
    if option is None:
        return one
    annotated: Any = Annotated
    kind = _kind(get_args(one.annotation)[0])
    default = list(one.default) if isinstance(one.default, tuple) else one.default
    return one.replace(
        annotation=annotated[kind, _option(one.name, option, one.default)], default=default
    )


def _option(name: str, option: Option, default: object) -> Any:
    names = option.flag or options.flag(name)
    if default is True:
        names = f"{names}/--no-{names[2:]}"
    return typer.Option(
        names,
        *([option.short] if option.short else []),
        metavar=option.metavar,
        help=option.help(),
        min=option.min,
        max=option.max,
        show_default=option.shown_default() or True,
        rich_help_panel=option.group or None,
        hidden=option.hidden,
        autocompletion=_COMPLETIONS.get(name),
    )


def _listed(value: object) -> Iterator[object]:
    yield from value if isinstance(value, list | tuple) else ()


def _kind(hint: Any) -> Any:
    """Returns the type that Typer reads: of text or a path, the path; of a sequence, a list."""
    parts = get_args(hint)
    if any(part is Path or get_origin(part) is PathLike for part in (hint, *parts)):
        return Path | None if NoneType in parts else Path
    if get_origin(hint) is Sequence:
        return list[parts[0]]  # type: ignore[valid-type]
    return hint
