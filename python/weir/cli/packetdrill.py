"""`weir packetdrill`: runs packetdrill's scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from weir.base.errors import InputError
from weir.base.options import MEASUREMENT
from weir.base.plain import plain_lines
from weir.cli import options, output, plans
from weir.guest import packetdrill
from weir.guest.packetdrill import ScriptResult

_HELP = """Run packetdrill scripts against Weir's transport or Linux's TCP.

Time is virtual. A script injects TCP segments, makes socket calls and states which segments must be
sent and when.
The language is packetdrill's, without what only a kernel has. The head of a script names its case
ids, its source, and the worlds where it fails for a known reason.

Prints a line per script, and for a failure the expected and the actual packet. Exit codes: 0 all
scripts hold, 1 a script fails or a known failure has gone, 2 a script is not valid. See
docs/packetdrill.md."""

_EXAMPLES = """[bold]Examples[/bold]

  weir packetdrill tests/packetdrill

  weir packetdrill my-script.pkt --stack rack/reno

  weir packetdrill tests/packetdrill --world kernel --virtual

  weir packetdrill tests/packetdrill/slow-start --json"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(packetdrill_)


def packetdrill_(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Scripts, or folders of scripts (*.pkt)."),
    ],
    stack: Annotated[
        str | None,
        typer.Option(
            "--stack",
            metavar="STACK",
            help="Recovery scheme and controller, in place of those of the scripts.",
            rich_help_panel=MEASUREMENT,
            show_default=False,
        ),
    ] = None,
    world: Annotated[
        str,
        typer.Option(
            "--world",
            metavar="sim|kernel",
            help="Weir's transport, or Linux's TCP, which requires --virtual or root.",
            rich_help_panel=MEASUREMENT,
        ),
    ] = "sim",
    virtual: Annotated[
        bool,
        typer.Option(
            "--virtual",
            help="With --world kernel: a guest's kernel, in virtual time.",
            rich_help_panel=MEASUREMENT,
        ),
    ] = False,
    kernel: options.Kernel = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Runs the scripts, prints the results, and exits with 1 if one is not good."""
    plans.choose_kernel(kernel, virtual=virtual)
    results = packetdrill.run_scripts(files, stack, _world(world, virtual=virtual))
    if json:
        output.print_json("packetdrill", [_row(result) for result in results])
    else:
        shown = [result for result in results if not (quiet and result.is_good)]
        lines = [Text(plain_lines(_line(result))) for result in shown]
        output.show(Group(*lines, Text(_summary(results))))
    if not all(result.is_good for result in results):
        raise typer.Exit(1)


def _world(name: str, *, virtual: bool) -> packetdrill.World:
    if name == "sim" and not virtual:
        return "sim"
    if name == "kernel":
        return "kernel-virtual" if virtual else "kernel"
    if name == "sim":
        raise InputError("--virtual: only --world kernel has a guest; world sim is virtual already")
    raise InputError(f"--world {name}: allowed is sim, kernel")


def _row(result: ScriptResult) -> dict[str, Any]:
    return {
        "file": str(result.path),
        "cases": list(result.cases),
        "source": result.source,
        "title": result.title,
        "world": result.world,
        "verdict": result.verdict,
        "line": result.line,
        "message": result.message,
        "reason": result.reason,
    }


def _line(result: ScriptResult) -> str:
    """As packetdrill reports: file, line, what differs, both packets."""
    cases = f" ({' '.join(result.cases)})" if result.cases else ""
    if result.verdict == "fail":
        return f"fail {result.path}:{result.line}: {result.message}"
    return f"{result.verdict} {result.path}{cases}{f': {result.reason}' if result.reason else ''}"


def _summary(results: Sequence[ScriptResult]) -> str:
    counts = Counter(result.verdict for result in results)
    return f"{len(results)} scripts: " + ", ".join(f"{n} {name}" for name, n in counts.items())
