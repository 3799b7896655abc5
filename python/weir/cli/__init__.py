"""The command `weir`: one file per verb, each of them thin."""

from __future__ import annotations

import errno
import gc
import os
import sys

from weir.base.errors import StoppedError
from weir.cli.app import app
from weir.cli.output import discard_stdout, prepare_streams

__all__ = ["app", "main"]


_COLLECT_AFTER = 10_000
"""New objects before Python looks for garbage; 700 by default.

Imports create a hundred thousand objects that all stay. Looking through them took 3 % of the time
of `weir compare`.
"""


def main() -> None:
    """Entry point of the command."""
    gc.set_threshold(_COLLECT_AFTER)
    prepare_streams()
    try:
        app(prog_name="weir")
    except SystemExit as exit_:
        code = _flush(exit_.code)
        if code == StoppedError.exit_code:
            # Running simulations cannot be interrupted, and a normal exit of the interpreter would
            # wait for them. All finished runs are on disk by now.
            os._exit(code)
        sys.exit(code)


def _flush(code: str | int | None) -> str | int | None:
    """Flushes stdout while errors can still be reported."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Otherwise the interpreter would try to write the buffer again at exit, and fail.
        discard_stdout()
        # A reader that closes the pipe early, as `head` does, is no failure.
        if error.errno == errno.EPIPE:
            return code
        if code == 0:  # report an error only once
            print(f"weir: {error.strerror}", file=sys.stderr)
        return 1
    return code
