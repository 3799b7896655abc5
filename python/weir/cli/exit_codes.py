"""How a command ends: an expected error becomes one line on stderr and an exit code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from weir._native import ScenarioError
from weir.base.errors import InputError, WeirError
from weir.cli import output


def exit_code(program: str, command: Callable[[], Any]) -> Any:
    """Runs `command`; returns what it returns, or the exit code of its error.

    `program` starts the line on stderr.
    """
    try:
        return command()
    except ScenarioError as error:
        return _fail(program, str(error), InputError.exit_code)
    except WeirError as error:
        return _fail(program, str(error), error.exit_code)
    except OSError as error:
        what = f"{error.filename}: " if error.filename else ""
        return _fail(program, f"{what}{error.strerror or error}", 1)
    except typer.Abort:
        return _fail(program, "stopped", 1)
    except typer.TyperException as error:
        # Without a message: the help was printed for a bare `weir`.
        message = _bad_value(error) or error.format_message()
        return _fail(program, message, error.exit_code) if message else 0


def _bad_value(error: typer.TyperException) -> str | None:
    """Option, value and what is allowed, where an option needs another number."""
    param, errors = getattr(error, "param", None), getattr(error.__cause__, "errors", None)
    if param is None or errors is None:
        return None
    first, *_ = errors()
    allowed = _ALLOWED.get(first["type"])
    if allowed is None:
        return None
    name, value = max(param.opts, key=len), first["input"]
    return f"{name} {value}: {value} is not allowed; {allowed.format(**first.get('ctx', {}))}"


_ALLOWED = {
    "int_parsing": "a whole number is needed",
    "float_parsing": "a number is needed",
    "greater_than_equal": "at least {ge}",
    "greater_than": "above {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "below {lt}",
}
"""What a number has to be, by the kind of the error."""


def _fail(program: str, message: str, code: int) -> int:
    # One line whatever the message holds, so that scripts can rely on it.
    output.note(f"{program}: {' '.join(message.split())}", quiet=False)
    return code
