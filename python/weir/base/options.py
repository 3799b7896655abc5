"""The one table of options.

A class whose fields are made with `option` is a part of the table: [`Comparison`][weir.api] what is
compared, `Execution` how runs are executed. The options of the command line, the keywords and the
documentation of the Python functions, and the keys of the scenario follow from it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

NETWORK, TRAFFIC, MEASUREMENT, OUTPUT = "Network", "Traffic", "Measurement", "Output"
"""The groups of options, in the order of `--help`."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option: of the command line, of Python, of the scenario."""

    about: str
    """What it does. Code is in backticks, and other options in braces."""
    group: str = ""
    form: str | None = None
    """What stands for its value in `--help`."""
    key: str | None = None
    """The key of the scenario that it sets."""
    example: str | None = None
    """A value with its unit; None if it has no unit."""
    otherwise: str = ""
    """The default, if that depends on other options."""
    short: str | None = None
    least: int | None = None
    python_only: bool = False

    def documentation(self) -> str:
        """What it does, as a docstring says it."""
        text = re.sub(r"\{(\w+)\}", r"`\1`", self.about)
        default = re.sub(r"\{(\w+)\}", r"`\1`", self.otherwise)
        return f"{text} Default: {default}." if default else text

    def help(self) -> str:
        """What it does, as `--help` says it."""
        return _for_command_line(self.about)

    def shown_default(self) -> str:
        """The default as `--help` shows it, if it depends on other options."""
        return _for_command_line(self.otherwise)


def option(default: T, about: str, **rest: Any) -> T:
    """Declares a field of the table, with its default value."""
    made: T = field(default=default, metadata={"option": Option(about, **rest)})
    return made


def collection(factory: Callable[[], T], about: str, **rest: Any) -> T:
    """Declares a field of the table whose default is an empty collection."""
    made: T = field(default_factory=factory, metadata={"option": Option(about, **rest)})
    return made


def of(table: type) -> dict[str, Option]:
    """Returns the options of a table by name."""
    return {one.name: one.metadata["option"] for one in _declared(table)}


def names_of_keys(table: type) -> dict[str, str]:
    """Returns the names of options by the key that they set."""
    return {one.key: name for name, one in of(table).items() if one.key}


def flag(name: str) -> str:
    """Returns the option of the command line with this name."""
    return f"--{name.replace('_', '-')}"


def parameters(table: type, hints: Mapping[str, Any]) -> Iterator[inspect.Parameter]:
    """Yields the options of a table as keywords with these types."""
    for one in _declared(table):
        yield inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(one),
            annotation=hints[one.name],
        )


def documented(given: type, *tables: type) -> Callable[[F], F]:
    """Gives a function that takes `**given` the signature and documentation of the tables.

    `given` is the dictionary type of its keywords.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        hints = get_type_hints(given)
        shared = [made for table in tables for made in parameters(table, hints)]
        function.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
        lines = [
            f"        {name}: {one.documentation()}"
            for table in tables
            for name, one in of(table).items()
        ]
        before, raises, after = (function.__doc__ or "").partition("\n\n    Raises:")
        function.__doc__ = "\n".join([before, *lines]) + raises + after
        return function

    return decorate


def _default(one: Field[Any]) -> object:
    if one.default_factory is not MISSING:
        return one.default_factory()
    return one.default


def _declared(table: type) -> Iterator[Field[Any]]:
    yield from (one for one in fields(table) if "option" in one.metadata)


def _for_command_line(text: str) -> str:
    with_flags = re.sub(r"\{(\w+)\}", lambda found: flag(found[1]), text)
    return with_flags.replace("`", "")
