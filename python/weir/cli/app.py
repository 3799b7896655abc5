"""The application object: help, shell completion, and errors in one line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer

from weir.base import version
from weir.base.errors import InputError, StoppedError, unknown
from weir.cli.exit_codes import exit_code
from weir.cli.help import Group, Verb

_DESCRIPTION = (
    "Compare transports, loss recovery and congestion control on a network, with confidence "
    "intervals.\n\n"
    "Results go to [bold]results/NAME/TIME-HASH[/bold] and are never overwritten; "
    "[bold]results/NAME/latest[/bold] is the newest.\n\n"
    "Exit codes: 0 success, 1 a run failed or results could not be written, 2 bad input, 130 "
    "interrupted (finished runs are kept, and --resume continues)."
)

VERBS: dict[str, dict[str, str]] = {
    "Compare and simulate": {
        "compare": "Compare stacks on the same network with the same seeds.",
        "run": "Run a scenario file: every point of its sweep, every repeat.",
        "study": "Reproduce a published experiment, next to its published values.",
        "ui": "Explore results or a scenario in the laboratory's page.",
    },
    "Search": {
        "tune": "Find the parameters that serve best.",
        "explain": "Find which unstated settings reproduce published numbers.",
        "search": "Find networks where a transport does badly.",
    },
    "Real paths": {
        "link": "Run a command behind an emulated link, with the kernel's own TCP.",
        "relay": "Relay UDP with configurable delay, loss and reordering.",
        "send": "Send files to weir recv over UDP, with any of Weir's transports.",
        "recv": "Receive files from weir send, until Ctrl-C.",
        "test": "Measure the path to a machine that runs weir test --server.",
    },
    "Captures and advice": {
        "read": "Show what limited the connections of captures, qlogs or results.",
        "advise": "Predict which congestion control would help on a captured path.",
        "model": "Make a scenario of the path behind a packet capture.",
    },
    "Judge": {
        "conform": "Judge stacks by cases of drafts, RFCs and bugs, and by scripts.",
        "validate": "Compare the simulator with Linux's TCP on the same scenarios.",
    },
    "Results": {
        "report": "Draw the report of results again, and export its figures.",
        "diff": "Compare two result directories, metric by metric.",
        "export": "Write a result directory in the format of another program.",
        "bundle": "Write results as one file that repeats them, or check one.",
        "cite": "Print how to cite results.",
    },
    "This machine": {
        "list": "List controllers, queues, scenarios, studies, metrics and more.",
        "stack": "Add guest kernels, programs of others and controls in BPF.",
        "doctor": "Check what this machine supports, and what would add more.",
    },
}
"""Module names of the verbs with their summaries, by purpose, in the order of `weir --help`.

The help page of a verb begins with its summary. Here it is known without importing the verb.
"""

_CALLED = {
    "packetdrill": "conform SCRIPTS",
    "serve": "test --server",
    "animate": "ui SCENARIO --save FILE",
    "simulate": "run",
    "sweep": "run --sweep",
}
"""Where something is that users look for by another name."""

_SUMMARIES = {name: text for panel in VERBS.values() for name, text in panel.items()}


class _Root(Group):
    """Turns every expected error into one line on stderr and its exit code."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """The verbs in the order of `weir --help`."""
        return list(_SUMMARIES)

    def panels(self, ctx: Any) -> dict[str, dict[str, str]]:  # noqa: ARG002
        """Returns the summaries of the verbs by purpose, without importing them."""
        return VERBS

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Imports and returns a verb: `weir send` does not wait for the imports of `weir compare`.

        Raises:
            InputError: there is no such verb.
        """
        if cmd_name in _CALLED:
            raise InputError(f"there is no command {cmd_name!r}; use weir {_CALLED[cmd_name]}")
        if cmd_name not in _SUMMARIES:
            raise InputError(unknown("command", cmd_name, _SUMMARIES))
        if cmd_name not in self.commands:
            alone = Verb(_SUMMARIES[cmd_name])
            import_module(f"weir.cli.{cmd_name}").register(alone)
            self.add_command(typer.main.get_command(alone), cmd_name)
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        """Runs the verb; reports Ctrl-C where the verb does not do so itself."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise StoppedError("interrupted") from None

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs the command line `args`."""
        run = super().main
        code = exit_code(
            "weir",
            lambda: run(args, prog_name, complete_var, False, windows_expand_args, **extra),
        )
        if standalone_mode:
            sys.exit(code)
        return code


app = typer.Typer(
    name="weir",
    cls=_Root,
    help=_DESCRIPTION,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"weir {version.described()}")
        raise typer.Exit


@app.callback()
def _root(
    _version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Options of all verbs."""
