"""Options common to most verbs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from weir.base.errors import InputError
from weir.base.options import OUTPUT

Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON object on stdout instead of tables.", rich_help_panel=OUTPUT
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="No progress bar and no messages on stderr.", rich_help_panel=OUTPUT
    ),
]


def check_output(file: Path | None) -> None:
    """Refuses, before anything runs, a path that could not be a file afterwards.

    Raises:
        InputError: it is a directory, or is in none.
    """
    if file is not None and (file.is_dir() or not file.absolute().parent.is_dir()):
        what = "is a directory" if file.is_dir() else "its directory does not exist"
        raise InputError(f"{file}: {what}; give the path of a file to write")


@contextmanager
def as_typed() -> Iterator[None]:
    """Names arguments in errors as options: `--max-wait forever:` for `max_wait='forever':`."""
    try:
        yield
    except InputError as error:
        arguments, colon, text = str(error).partition(": ")
        if not _ARGUMENTS.fullmatch(arguments):
            raise
        options = [
            "--" + name.replace("_", "-") + (f" {shlex.quote(value)}" if value else "")
            for name, value in _ARGUMENT.findall(arguments)
        ]
        raise type(error)(f"{' '.join(options)}{colon}{text}") from None


_ARGUMENT = re.compile(r"([a-z]+(?:_[a-z]+)*)(?:='([^']*)')?")
_ARGUMENTS = re.compile(rf"{_ARGUMENT.pattern}(, {_ARGUMENT.pattern})*")
