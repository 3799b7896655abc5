"""The command `weir`: one file per verb, each of them thin."""

from __future__ import annotations

import errno
import os
import sys

from weir.cli.app import app
from weir.cli.output import discard_stdout
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
        # What is still buffered would be written, and refused, once more at exit.
        discard_stdout()
        # A reader that has seen enough, as `head` has, is no failure.
        if error.errno == errno.EPIPE:
            return code
        if code == 0:  # an error is told once
            print(f"weir: {error.strerror}", file=sys.stderr)
        return 1
    return code
