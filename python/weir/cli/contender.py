"""`weir contender`: builds the programs of contenders."""

from __future__ import annotations

from typing import Annotated

import typer

from weir.cli import options, output
from weir.contenders import build as building

_HELP = "Build programs of other projects that run as stacks in [bold]--world kernel[/bold]."

_BUILD_HELP = (
    "Build the programs of a contender that no package has.\n\n"
    "They are kept in your cache directory. [bold]weir list contenders[/bold] lists all, "
    "with what is missing on this machine."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir contender build quiche

  weir contender build quinn --version 0.11.12"""


def register(app: typer.Typer) -> None:
    """Adds the verbs."""
    app.callback(help=_HELP, no_args_is_help=True)(_root)
    app.command(help=_BUILD_HELP, epilog=_EXAMPLES)(build)


def _root() -> None:
    """Options of all subcommands: none."""


def build(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Contender to build.")],
    version: Annotated[
        str | None,
        typer.Option("--version", metavar="VERSION", help="Version.", show_default="the newest"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Build again, even if it exists.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Builds the programs of a contender if they do not exist."""
    building.build(name, lambda line: output.note(line, quiet=quiet), version=version, force=force)
