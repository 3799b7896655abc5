"""The application object: help, shell completion, and errors in one line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer

from weir._native import version
from weir.base.errors import InputError, StoppedError, unknown
from weir.cli.ending import exit_code
from weir.cli.help import Group, Verb

_DESCRIPTION = (
    "Compare transports, loss recovery and congestion control on a network, with confidence "
    "intervals.\n\n"
    "Results go to [bold]results/NAME/TIME-HASH[/bold] and are never overwritten; "
    "[bold]results/NAME/latest[/bold] is the newest.\n\n"
    "Exit codes: 0 success, 1 a run failed or results could not be written, 2 bad input, 130 "
    "interrupted (finished runs are kept, and --resume continues)."
)

_VERBS = {
    "compare": "Run several stacks on the same network with the same seeds, and compare them.",
    "run": "Run a scenario file: every point of its sweep, every repeat.",
    "ui": "Explore results in the laboratory's page, until Ctrl-C.",
    "animate": "Play a run packet by packet, in one HTML file.",
    "study": "Reproduce a published experiment and print published and measured values.",
    "send": "Send files to weir recv over UDP, with any of Weir's transports.",
    "recv": "Receive files from weir send, from any number of senders, until Ctrl-C.",
    "key": "Write a new key to FILE, for the --key-file of weir send and weir recv.",
    "test": "Measure the path to a machine that runs weir serve.",
    "serve": "Take part in path tests of weir test, until Ctrl-C.",
    "relay": "Relay UDP with configurable delay, loss and reordering.",
    "link": "Run a command behind an emulated link, with real packets and the kernel's own TCP.",
    "kernel": "Build and list guest kernels for --world kernel --virtual.",
    "contender": "Build programs of other projects that run as stacks in --world kernel.",
    "kernel-cc": "Add congestion controls to this machine's kernel, as BPF programs.",
    "packetdrill": "Run packetdrill scripts against Weir's transport or Linux's TCP.",
    "validate": "Run the same scenarios in the simulator and in Linux's TCP, and compare.",
    "conform": "Judge stacks by test cases of drafts, RFCs and bug reports.",
    "list": "List controllers, queues, scenarios, studies, metrics and more.",
    "diff": "Compare two result directories, metric by metric, with 95 % intervals of the "
    "differences.",
    "read": "Read packet captures, qlogs or results, and show what limited each connection.",
    "model": "Make a scenario of the path behind a packet capture.",
    "advise": "Predict which congestion control would help on the path behind a packet capture.",
    "report": "Draw the report of a result directory again, and export its figures.",
    "export": "Write a result directory in the format of another program.",
    "doctor": "Check what this machine supports, and what each missing component would add.",
}
"""Module name and summary of each verb, in the order of `weir --help`.

A test checks that a summary equals the first paragraph of the verb's own help. It is repeated here
because `weir --help` must not import the verbs.
"""


class _Root(Group):
    """Turns every expected error into one line on stderr and its exit code."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """The verbs in the order of `weir --help`."""
        return list(_VERBS)

    def summaries(self, ctx: Any) -> dict[str, str]:  # noqa: ARG002
        """Returns the summary of each verb, without importing it."""
        return _VERBS

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Imports and returns a verb: `weir send` does not wait for the imports of `weir compare`.

        Raises:
            InputError: there is no such verb.
        """
        if cmd_name not in _VERBS:
            raise InputError(unknown("command", cmd_name, _VERBS))
        if cmd_name not in self.commands:
            alone = Verb()
            import_module(f"weir.cli.{cmd_name.replace('-', '_')}").register(alone)
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
        typer.echo(f"weir {version()}")
        raise typer.Exit


@app.callback()
def _root(
    _version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Options of all verbs."""
