"""`weir serve`: the far end of `weir test`."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from weir.base.errors import InputError, StoppedError
from weir.base.options import Option
from weir.cli import options, output, table
from weir.cli import transfer as tables
from weir.pathtest.options import ServerOptions

_HELP = """Take part in path tests of [bold]weir test[/bold], until Ctrl-C.

Listens on one port, for TCP and UDP. A client must have a copy of the key that [bold]weir \
key[/bold] makes. The server sends only to a client that has proved itself, only zeros and times, \
and only within the limits below. It reads and writes no file but the key."""

_EXAMPLES = """[bold]Examples[/bold]

  weir serve --key-file weir.key

  weir serve --key-file weir.key --listen 192.0.2.7:9077 --max-rate 100mbit --max-time 20s

  weir serve --no-key --listen 127.0.0.1:9077"""

_KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        "--key-file",
        metavar="FILE",
        help="Admit clients with this key, made by weir key. With - the key is a line of "
        "standard input, at whose end the server ends.",
    ),
]
_Stdio = Annotated[
    bool,
    typer.Option(
        "--stdio",
        help="Take part in runs of weir run --hosts, which starts this over ssh. Ends with "
        "standard input.",
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(serve)


@table.taking(ServerOptions)
def serve(
    *,
    key_file: _KeyFile = None,
    no_key: Annotated[bool, Option("Admit any client that can reach the port.")] = False,
    stdio: _Stdio = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Serves until it is interrupted."""
    if stdio:
        _serve_run(key_file, no_key=no_key)
        return
    from weir.pathtest.server import Server

    if no_key == (key_file is not None):
        raise InputError(
            "a server needs a key: make one by weir key FILE and add --key-file FILE; or admit any "
            "client by --no-key"
        )
    has_input = key_file == Path("-")
    key = _key(key_file)
    tables.warn_of_exposed(key_file, quiet=quiet)
    server = ServerOptions(**given)
    with options.as_typed():
        limits = server.limits()
    tables.heed_interrupts()
    with Server(server.listen, key, limits, lambda text: output.note(text, quiet=quiet)) as work:
        host, port = work.address[:2]
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        output.note(f"listening on {where}, TCP and UDP", quiet=quiet)
        _wait(has_input=has_input)


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


def _serve_run(key_file: Path | None, *, no_key: bool) -> None:
    from weir.hosts.agent import Agent

    if key_file is not None or no_key:
        raise InputError("--stdio: access is by ssh; leave out --key-file and --no-key")
    Agent().serve()


def _key(file: Path | None) -> bytes | None:
    from weir.probes import channel

    if file == Path("-"):
        return channel.parse_key(sys.stdin.buffer.readline(), "standard input")
    return None if file is None else channel.read_key(file)
