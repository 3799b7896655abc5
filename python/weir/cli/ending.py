"""How a command ends: an expected error becomes one line on stderr and an exit code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from weir._native import ScenarioError
from weir.errors import InputError, WeirError
from weir.plain import plain


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
        message = error.format_message()
        return _fail(program, message, error.exit_code) if message else 0


def _fail(program: str, message: str, code: int) -> int:
    # One line whatever the message holds, so that scripts can rely on it.
    line = " ".join(message.split())
    output = Console(stderr=True, soft_wrap=True, highlight=False)
    output.print(Text(f"{program}: {plain(line)}"))
    return code
