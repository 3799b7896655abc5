"""Output of the verbs: tables or JSON on stdout, everything else on stderr."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from io import TextIOWrapper
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from weir.base.plain import plain, plain_lines

SCHEMA = 1
"""Version of the JSON that every verb prints."""

_PLAIN_WIDTH = 160

_REPLACING = "weir-replace"
_PLAINER = {"±": "+-", "−": "-", "–": "-", "─": "-", "…": "...", "×": "x", "•": "*", "→": "->"}
"""For encodings that lack these; all others become a question mark."""


class Output(Console):
    """Stdout. If its reader closes the pipe, as `head` does, the verb continues without it."""

    def __init__(self, width: int | None = None) -> None:
        super().__init__(width=width, highlight=False)

    def on_broken_pipe(self) -> None:
        """Discards the rest of the output."""
        discard_stdout()


def prepare_streams() -> None:
    """Makes stdout and stderr take any text: closed ones discard it, others replace what they lack.

    A terminal of another locale cannot show every character.
    """
    codecs.register_error(_REPLACING, _replaced)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_REPLACING)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(_PLAINER.get(letter, "?") for letter in letters), error.end


def discard_stdout() -> None:
    """Redirects stdout to the null device, with what is still buffered."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(command: str, rows: Sequence[Mapping[str, Any]], **more: Any) -> None:
    """Prints the object of `--json`. It depends on the command only, not on time or machine."""
    document = {"schema": SCHEMA, "command": command, **more, "rows": list(rows)}
    try:
        print(json.dumps(document, ensure_ascii=False), flush=True)
    except BrokenPipeError:
        discard_stdout()


def show(renderable: RenderableType) -> None:
    """Prints a table on stdout; in a pipe as wide as `COLUMNS`, or without folding."""
    console = Output()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PLAIN_WIDTH
    console.print(renderable)


def points(texts: Iterable[str]) -> list[RenderableType]:
    """Returns sentences for `show`, each with a bullet."""
    return [Padding(Text(f"• {plain_lines(text)}"), (0, 0, 0, 1)) for text in texts]


def note(text: str, *, quiet: bool) -> None:
    """Prints a line on stderr, unless quiet."""
    if not quiet:
        Console(stderr=True, soft_wrap=True, highlight=False).print(Text(plain(text)))
