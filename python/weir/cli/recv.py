"""`weir recv`: receives what `weir send` sends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from weir import _native
from weir.cli import options, output, transfer
from weir.errors import StoppedError

_HELP = """Receive files from [bold]weir send[/bold], from any number of senders, until Ctrl-C.

A file appears in DIR under its base name only when its hash is right; a name that is taken gets a
number, and a file that is there already is not sent again. What has arrived of an interrupted
transfer stays in hidden files, from which the next one goes on."""

_EXAMPLES = """[bold]Examples[/bold]

  weir recv --dir in

  weir recv --dir in --once --json

  weir recv --bind 127.0.0.1:9001 --max-size 2gb --max-files 10

  weir recv --dir in --key-file weir.key"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(recv)


def recv(
    directory: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Where files go; made if need be.")
    ] = Path(),
    bind: Annotated[
        str, typer.Option(metavar="ADDR:PORT", help="Where to listen; port 0 takes any.")
    ] = "[::]:9000",
    once: Annotated[bool, typer.Option("--once", help="End after the first session.")] = False,
    max_size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Refuse larger files.", show_default="what the disk has room for"
        ),
    ] = None,
    max_files: Annotated[int, typer.Option(min=1, help="Refuse more files of one sender.")] = 10000,
    key_file: transfer.KeyFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Receives, prints what became of each file."""
    size = None if max_size is None else round(transfer.quantity("size", "--max-size", max_size))
    transfer.warn_of_exposed(key_file, quiet=quiet)
    transfer.heed_interrupts()
    with transfer.bar(show=not quiet) as progress:
        sessions = _Sessions(progress, as_json=json, quiet=quiet)
        try:
            with transfer.errors_told():
                _native.receive_files(
                    directory,
                    bind,
                    max_size=size,
                    max_files=max_files,
                    once=once,
                    key_file=key_file,
                    tell=sessions.tell,
                )
        except KeyboardInterrupt:
            sessions.interrupted = True
    if json:
        output.print_json("recv", sessions.rows)
    if sessions.interrupted:
        raise StoppedError("stopped; what has arrived is kept")
    if once:
        sessions.judge()


class _Sessions:
    """What is told of sessions, and what comes of them."""

    def __init__(self, progress: transfer.Bar, *, as_json: bool, quiet: bool) -> None:
        self._progress, self._as_json, self._quiet = progress, as_json, quiet
        self.rows: list[dict[str, Any]] = []
        self.failure: str | None = None
        self.interrupted = False

    def tell(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Takes in what happens."""
        if kind == "progress":
            self._progress.show(facts)
        elif kind == "listening":
            output.remark(f"listening on {facts['address']}, Ctrl-C ends", quiet=self._quiet)
        else:
            self._on_ended(facts)

    def _on_ended(self, facts: Mapping[str, Any]) -> None:
        rows, failure = facts["rows"], facts["failure"]
        self.failure = failure
        self.rows += transfer.with_goodput(rows)
        if not self._as_json and rows:
            title = f"{transfer.counted(rows)} from {facts['sender']}"
            with self._progress.hidden():
                output.show(transfer.table(title, rows).rich())
        if failure:
            text = f"{facts['sender']}: {failure}; what has arrived is kept"
            with self._progress.hidden():
                output.remark(text, quiet=self._quiet)

    def judge(self) -> None:
        """Fails if anything of the only session is missing."""
        missing = [row for row in self.rows if not transfer.is_there(row)]
        if self.failure:
            raise transfer.FailedError(self.failure)
        if missing:
            of = transfer.counted(self.rows)
            raise transfer.FailedError(f"{len(missing)} of {of} did not arrive")
