"""Tables and sentences on stdout, drawn by Rich. `weir --help` and errors do not import it."""

from __future__ import annotations

import os
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from weir.base.plain import plain_lines
from weir.cli.output import discard_stdout

_PLAIN_WIDTH = 160


class _Output(Console):
    """Stdout. If its reader closes the pipe, as `head` does, the verb continues without it."""

    def on_broken_pipe(self) -> None:
        """Discards the rest of the output."""
        discard_stdout()


def show(renderable: RenderableType) -> None:
    """Prints a table on stdout; in a pipe as wide as `COLUMNS`, or without folding."""
    console = _Output(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PLAIN_WIDTH
    console.print(renderable)


def points(texts: Iterable[str]) -> list[RenderableType]:
    """Returns sentences for `show`, each with a bullet."""
    return [Padding(Text(f"• {plain_lines(text)}"), (0, 0, 0, 1)) for text in texts]
