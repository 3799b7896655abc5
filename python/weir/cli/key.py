"""`weir key`: makes a key for `--key-file`."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Annotated

import typer

from weir.base.errors import InputError
from weir.cli import options, output

_HELP = """Write a new key to FILE, for the [bold]--key-file[/bold] of [bold]weir send[/bold] and \
[bold]weir recv[/bold].

A key is 32 random bytes in hexadecimal. Anyone with a copy can send to a receiver that requires it,
and decrypt transfers. Copy it over a trusted channel such as ssh."""

_EXAMPLES = """[bold]Examples[/bold]

  weir key weir.key

  scp weir.key example.org:

  weir recv --dir in --key-file weir.key

  weir send big.bin example.org:9000 --key-file weir.key"""

_KEY_BYTES = 32


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(key)


def key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to create.")],
    quiet: options.Quiet = False,
) -> None:
    """Creates a file that only its owner can read; never replaces one."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(f"'{file}' already exists, and keys are not overwritten") from None
    except OSError as error:
        raise InputError(f"cannot create '{file}': {error.strerror}") from error
    with os.fdopen(descriptor, "w", encoding="ascii") as out:
        out.write(secrets.token_hex(_KEY_BYTES) + "\n")
    output.note(f"new key in {file}", quiet=quiet)
