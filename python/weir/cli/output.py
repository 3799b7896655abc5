"""What the verbs print: tables or JSON on stdout, everything else on stderr."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

SCHEMA = 1
"""Version of the JSON that every verb prints."""

_PLAIN_WIDTH = 160


def print_json(command: str, rows: Sequence[Mapping[str, Any]], **more: Any) -> None:
    """The one object of `--json`. It depends on the command only, never on time or machine."""
    document = {"schema": SCHEMA, "command": command, **more, "rows": list(rows)}
    print(json.dumps(document, ensure_ascii=False))


def show(renderable: RenderableType) -> None:
    """A table on stdout, wide enough for a file or a pipe too."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH
    console.print(renderable)


def remark(text: str, *, quiet: bool) -> None:
    """A line for the person at the terminal."""
    if not quiet:
        Console(stderr=True, soft_wrap=True, highlight=False).print(Text(text))
