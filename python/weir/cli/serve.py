"""`weir serve`: the far end of `weir test`."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from weir.base.errors import InputError, StoppedError
from weir.cli import options, output
from weir.cli import transfer as tables
from weir.transfer.files import quantity

_HELP = """Take part in path tests of [bold]weir test[/bold], until Ctrl-C.

Listens on one port, for TCP and UDP. A client must have a copy of the key that [bold]weir \
key[/bold] makes. The server sends only to a client that has proved itself, only zeros and times, \
and only within the limits below. It reads and writes no file but the key."""

_EXAMPLES = """[bold]Examples[/bold]

  weir serve --key-file weir.key

  weir serve --key-file weir.key --listen 192.0.2.7:9077 --max-rate 100mbit --max-time 20s

  weir serve --no-key --listen 127.0.0.1:9077"""

_LIMITS = "Limits"
_LEAST_BPS, _LEAST_S = 1000, 0.5


_KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        "--key",
        metavar="FILE",
        help="Admit clients with this key, made by weir key. With - the key is a line of "
        "standard input, at whose end the server ends.",
    ),
]
_MaxRate = Annotated[
    str | None,
    typer.Option(
        metavar="RATE",
        help="Most of all flows of a test in one direction.",
        show_default="none",
        rich_help_panel=_LIMITS,
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


def serve(
    listen: Annotated[
        str,
        typer.Option(
            metavar="ADDR:PORT", help="Where to listen, TCP and UDP; port 0 selects a free one."
        ),
    ] = ":9077",
    key_file: _KeyFile = None,
    no_key: Annotated[
        bool, typer.Option("--no-key", help="Admit any client that can reach the port.")
    ] = False,
    max_rate: _MaxRate = None,
    max_time: Annotated[
        str, typer.Option(metavar="TIME", help="Longest load.", rich_help_panel=_LIMITS)
    ] = "60s",
    max_clients: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="Clients at a time; two at once would measure each other.",
            rich_help_panel=_LIMITS,
        ),
    ] = 1,
    stdio: _Stdio = False,
    quiet: options.Quiet = False,
) -> None:
    """Serves until it is interrupted."""
    if stdio:
        _serve_run(key_file, no_key=no_key)
        return
    from weir.pathtest.server import Server
    from weir.pathtest.session import Limits

    if no_key == (key_file is not None):
        raise InputError(
            "a server needs a key: make one by weir key FILE and add --key-file FILE; or admit any "
            "client by --no-key"
        )
    has_input = key_file == Path("-")
    key = _key(key_file)
    tables.warn_of_exposed(key_file, quiet=quiet)
    with options.as_typed():
        limits = Limits(
            None if max_rate is None else quantity("rate", "max_rate", max_rate),
            quantity("time", "max_time", max_time),
            max_clients,
        )
    if limits.rate_bps is not None and limits.rate_bps < _LEAST_BPS:
        raise InputError(f"--max-rate {max_rate}: allowed is 1kbit or more")
    if limits.time_s < _LEAST_S:
        raise InputError(
            f"--max-time {max_time}: allowed is 500ms or more, as the shortest load has"
        )
    tables.heed_interrupts()
    with Server(listen, key, limits, lambda text: output.note(text, quiet=quiet)) as server:
        host, port = server.address[:2]
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
