"""Options: described once, next to their type, for Python and for the command line.

A keyword of a function or a field of a dataclass is an option if its type says what it does:

    rate: Annotated[str | None, Option("Upper limit of the send rate, as in `50mbit`.")] = None

`of` and `parameters` read the options of a function or a dataclass. The options of the command
line, their help and their defaults follow from them, and so do docstrings (`documented`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, TypeVar, get_args, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])

NETWORK, TRAFFIC, MEASUREMENT, OUTPUT = "Network", "Traffic", "Measurement", "Output"
"""The groups of options, in the order of `--help`."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option: of the command line, of Python, of the scenario."""

    about: str
    """What it does. Code is in backticks, and other options in braces."""
    group: str = ""
    metavar: str | None = None
    """What stands for its value in `--help`."""
    key: str | None = None
    """The key of the scenario that it sets."""
    example: str | None = None
    """A value with its unit; None if it has no unit."""
    default_text: str = ""
    """The default, if that depends on other options."""
    short: str | None = None
    min: int | None = None
    max: int | None = None
    python_only: bool = False
    flag: str = ""
    """Its name on the command line, if that is another: of a repeated option, the singular."""
    hidden: bool = False
    """Whether `--help` leaves it out."""

    def documentation(self) -> str:
        """What it does, as a docstring says it."""
        text = re.sub(r"\{(\w+)\}", r"`\1`", self.about)
        default = re.sub(r"\{(\w+)\}", r"`\1`", self.default_text)
        return f"{text} Default: {default}." if default else text

    def help(self) -> str:
        """What it does, as `--help` says it."""
        return _for_command_line(self.about)

    def shown_default(self) -> str:
        """The default as `--help` shows it, if it depends on other options."""
        return _for_command_line(self.default_text)


Source = Callable[..., Any]
"""What has options: a function or a dataclass."""


def described(annotation: object) -> Option | None:
    """Returns the option that a type describes, if it does."""
    return next((x for x in getattr(annotation, "__metadata__", ()) if isinstance(x, Option)), None)


def parameters(source: Source) -> list[inspect.Parameter]:
    """Returns the options of a function or a dataclass as keywords, with annotated types."""
    hints = get_type_hints(source, include_extras=True)
    return [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name]
        )
        for name, default in _defaults(source)
        if described(hints.get(name))
    ]


def of(source: Source) -> dict[str, Option]:
    """Returns the options of a function or a dataclass by name."""
    found = ((one.name, described(one.annotation)) for one in parameters(source))
    return {name: option for name, option in found if option}


def chosen(source: Source, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of a function or a dataclass among those given."""
    return {name: given[name] for name in of(source) if name in given}


def names_of_keys(source: Source) -> dict[str, str]:
    """Returns the names of options by the key that they set."""
    return {one.key: name for name, one in of(source).items() if one.key}


def flag(name: str) -> str:
    """Returns the option of the command line with this name."""
    return f"--{name.replace('_', '-')}"


def documented(*tables: Source) -> Callable[[F], F]:
    """Adds the options of a function or a dataclass to its docstring.

    A function that takes `**given` gets a signature with the options of `tables` in their place.
    """

    def decorate(source: F) -> F:
        known = dict(of(source))
        order = [name for name, _ in _defaults(source)]
        if tables:
            signature = inspect.signature(source)
            own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
            shared = list(_keywords(source, tables))
            source.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
            order = [one.name for one in (*own, *shared)]
            for table in tables:
                known |= of(table)
        entries = {name: one.documentation() for name, one in known.items()}
        source.__doc__ = _with_arguments(source.__doc__ or "", entries, order)
        return source

    return decorate


def _defaults(source: Source) -> Iterator[tuple[str, object]]:
    """Yields the names of a function's parameters, or of a dataclass's, with their defaults."""
    if isinstance(source, type) and is_dataclass(source):
        for one in fields(source):
            made = one.default_factory
            if one.init:
                yield one.name, one.default if made is MISSING else made()
        return
    for name, parameter in inspect.signature(source).parameters.items():
        yield name, parameter.default


def _keywords(function: Source, tables: tuple[Source, ...]) -> Iterator[inspect.Parameter]:
    """Yields the options of `tables` with the types that `**given` has for them."""
    hints = get_type_hints(function)
    (rest,) = (
        p.name for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_KEYWORD
    )
    types = get_type_hints(get_args(hints[rest])[0])
    for table in tables:
        for one in parameters(table):
            yield one.replace(annotation=types[one.name])


def _with_arguments(text: str, entries: Mapping[str, str], order: list[str]) -> str:
    """Returns a docstring whose section of arguments has these entries too."""
    before, heading, rest = text.partition("\n\n    Args:\n")
    if heading:
        written, blank, after = rest.partition("\n\n")
        after = blank + after
        found = re.findall(r"^ {8}(\w+): (.*(?:\n {9,}.*)*)", written, re.MULTILINE)
        entries = dict(found) | dict(entries)
    else:
        place = re.search(r"\n\n    (Returns|Raises):", text)
        before, after = (
            (text[: place.start()], text[place.start() :]) if place else (text.rstrip(), "\n    ")
        )
    known = sorted(entries, key=lambda name: order.index(name) if name in order else -1)
    lines = (f"        {name}: {entries[name]}" for name in known)
    return "\n".join([f"{before}\n\n    Args:", *lines]) + after


def _for_command_line(text: str) -> str:
    with_flags = re.sub(r"\{(\w+)\}", lambda found: flag(found[1]), text)
    # Code of several words keeps its quotes.
    return re.sub(r"`(\S+?)`", r"\1", with_flags)
