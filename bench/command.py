"""How the benchmarks run as commands: help and errors as those of `weir`."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer

from weir.cli.exit_codes import exit_code
from weir.cli.help import Command


def run(bench: Callable[..., None], module: str) -> None:
    """Runs `bench` as the command `python -m MODULE`, with its parameters as options; exits."""
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command(cls=Command)(bench)
    command = typer.main.get_command(app)
    program = f"python -m {module}"
    sys.exit(exit_code(module, lambda: command.main(prog_name=program, standalone_mode=False)))
