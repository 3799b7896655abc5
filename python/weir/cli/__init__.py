"""The command `weir`: one file per verb, each of them thin."""

from __future__ import annotations

import errno
import os
import sys

from weir.cli.app import app
from weir.errors import StoppedError

__all__ = ["app", "main"]


def main() -> None:
    """Entry point of the command."""
    try:
        app(prog_name="weir")
    except SystemExit as exit_:
        code = _flush(exit_.code)
        if code == StoppedError.exit_code:
            # Simulations that are under way cannot be interrupted, and an orderly exit of the
            # interpreter would wait for them. Everything worth keeping is on disk by now.
            os._exit(code)
        sys.exit(code)


def _flush(code: str | int | None) -> str | int | None:
    """Writes out what was printed while errors can still be told."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # A reader that has seen enough is no failure worth a word, and an error is told once.
        if error.errno != errno.EPIPE and code == 0:
            print(f"weir: {error.strerror}", file=sys.stderr)
        # What is still buffered would be written, and refused, once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code
