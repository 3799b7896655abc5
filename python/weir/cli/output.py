"""Output of the verbs: text or JSON on stdout, everything else on stderr."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import Any

from weir.base.plain import plain

SCHEMA = 1
"""Version of the JSON that every verb prints."""

_REPLACING = "weir-replace"
_PLAINER = {"±": "+-", "−": "-", "–": "-", "─": "-", "…": "...", "×": "x", "•": "*", "→": "->"}
"""For encodings that lack these; all others become a question mark."""


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
    print_text(json.dumps(document, ensure_ascii=False))


def print_text(text: str) -> None:
    """Prints on stdout; nothing any more once its reader closed the pipe, as `head` does."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        discard_stdout()


def note(text: str, *, quiet: bool) -> None:
    """Prints a line on stderr, unless quiet or stderr is closed."""
    if not quiet:
        with suppress(BrokenPipeError):
            print(plain(text), file=sys.stderr, flush=True)
