"""Arguments of the public functions: refused by name, with what there is and what was meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from weir._native import ScenarioError
from weir.base.errors import InputError, unknown
from weir.base.options import Option

P = ParamSpec("P")
R = TypeVar("R")


def suggesting(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, which refuses an unknown keyword with the nearest one and all others."""
    parameters = inspect.signature(function).parameters.values()
    known = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                raise TypeError(f"{function.__name__}: {unknown('argument', name, known)}")
        return function(*args, **kwargs)

    return checked


def quantities(table: Mapping[str, Option], given: Mapping[str, object]) -> None:
    """Refuses numbers where a unit is needed.

    Raises:
        InputError: one is not text; the message names it.
    """
    for name, value in given.items():
        example = table[name].example if name in table else None
        if example is not None and value is not None and not isinstance(value, str):
            written = f"{name}={example!r}"
            raise InputError(f"{name}={value!r}: write it as text with its unit, as in {written}")


def stacks(given: Sequence[object]) -> None:
    """Refuses anything but names.

    Raises:
        InputError: one is not text.
    """
    for stack in given:
        if not isinstance(stack, str):
            raise InputError(
                f"stack {stack!r}: write each stack as an argument, as in compare('reno', 'cubic')"
            )


def overrides(sets: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Keys and values as a command line has them."""
    return tuple((key, _text(value)) for key, value in sets.items())


def swept(sweep: Mapping[str, Sequence[object]]) -> dict[str, tuple[str, ...]]:
    """Keys and their values as a command line has them.

    Raises:
        InputError: the values of a key are no list.
    """
    for key, values in sweep.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise InputError(f"sweep of {key}: {values!r} is not a list of values")
    return {key: tuple(map(_text, values)) for key, values in sweep.items()}


@contextmanager
def spelled(
    form: str, names: Mapping[str, str], values: Mapping[str, str], stacks: Sequence[str]
) -> Iterator[None]:
    """Says in errors what a person has written, in place of the key of the scenario behind it.

    `names` are those of the options by key, `values` those of the keys. `form` is what stands for
    them, made of `name` and `value`, as in `--{name} {value}`. What is wrong with a stack names it
    already.
    """
    try:
        yield
    except (ScenarioError, InputError) as error:
        text = str(error)
        for key, value in values.items():
            if text.startswith(f"{key}={value}: ") and key in names:
                name = names[key].replace("_", "-") if form.startswith("-") else names[key]
                written = form.format(name=name, value=value)
                raise type(error)(written + text.removeprefix(f"{key}={value}")) from None
        for stack in stacks:
            if text.startswith(begin := f"flow.0.stack={stack}: "):
                raise type(error)(text.removeprefix(begin)) from None
        raise


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
