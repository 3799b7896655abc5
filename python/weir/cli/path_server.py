"""`weir test --server`: the end of a path test that waits for clients."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from weir.base.errors import InputError, StoppedError
from weir.cli import options, output
from weir.cli import transfer as tables
from weir.pathtest.options import ServerOptions
from weir.pathtest.server import Server
from weir.probes import channel

STDIN = Path("-")
"""The key file that stands for standard input."""


def serve(server: ServerOptions, key_file: Path | None, *, no_key: bool, quiet: bool) -> None:
    """Serves until it is interrupted.

    Raises:
        InputError: an option is not valid.
        StoppedError: Ctrl-C.
    """
    if no_key == (key_file is not None):
        raise InputError(
            "a server needs a key: make one by weir recv --new-key FILE and add --key-file FILE; "
            "or admit any client by --no-key"
        )
    key = _key(key_file)
    tables.warn_of_exposed(key_file, quiet=quiet)
    with options.as_typed():
        limits = server.limits()
    tables.restore_interrupts()
    with Server(server.listen, key, limits, lambda text: output.note(text, quiet=quiet)) as work:
        host, port = work.address[:2]
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        output.note(f"listening on {where}, TCP and UDP", quiet=quiet)
        _wait(has_input=key_file == STDIN)


def _wait(*, has_input: bool) -> None:
    """Waits for Ctrl-C, or for the end of standard input."""
    try:
        if has_input:
            while sys.stdin.buffer.readline():
                pass
        else:
            threading.Event().wait()
    except KeyboardInterrupt:
        raise StoppedError("stopped") from None


def _key(file: Path | None) -> bytes | None:
    if file == STDIN:
        return channel.parse_key(sys.stdin.buffer.readline(), "standard input")
    return None if file is None else channel.read_key(file)
