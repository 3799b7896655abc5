"""`weir advise`: what would help on the path behind a capture."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weir.base.errors import InputError
from weir.base.grid import Grid
from weir.base.options import MEASUREMENT
from weir.cli import options, output
from weir.cli.model import Connection, ReportFile, Stack, refuse_existing

if TYPE_CHECKING:
    from weir.advice.predictions import Prediction
    from weir.modelling.measured import Measurement

_HELP = """Predict which congestion control would help on the path behind a packet capture.

INPUT is a capture made at the sender, or a result directory.
Models the path as weir model does, simulates the transfer with each controller on it, and ranks
them. Each repeat draws the path from the intervals of the model.

Exit codes: 0 predicted, 2 the input has too little. See docs/advise.md."""

_EXAMPLES = """[bold]Examples[/bold]

  weir advise slow.pcapng

  weir advise slow.pcapng --stacks bbr,illinois,vegas --size 10mb --report advice.html

  weir advise slow.pcapng --stacks cubic,bbr --queues fq-codel,2bdp --streams 4"""


def _settings(metavar: str, what: str) -> Any:
    """Declares an option with settings, each of which is tried with each controller."""
    return typer.Option(metavar=metavar, help=what, show_default=False, rich_help_panel=MEASUREMENT)


_Stacks = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="Controllers to try, also with a recovery scheme, as in rack/bbr.",
        show_default="eight of Linux, bbr3 and copa",
        rich_help_panel=MEASUREMENT,
    ),
]
_Size = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Bytes to transfer, as in 10mb.",
        show_default="as measured",
        rich_help_panel=MEASUREMENT,
    ),
]
_Queues = Annotated[
    str | None,
    _settings(
        "QUEUE,...",
        "Queues of the bottleneck to try: a size or a discipline, as in 1bdp,fq-codel.",
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(advise)


def advise(
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="Capture, or result directory.")],
    stacks: _Stacks = None,
    size: _Size = None,
    windows: Annotated[str | None, _settings("SIZE,...", "Receiver's windows to try.")] = None,
    queues: _Queues = None,
    mss: Annotated[str | None, _settings("BYTES,...", "Largest segments to try.")] = None,
    streams: Annotated[
        str | None,
        _settings("N,...", "Numbers of connections to try that share the transfer."),
    ] = None,
    repeat: Annotated[
        int,
        typer.Option("--repeat", "-n", min=2, help="Runs each.", rich_help_panel=MEASUREMENT),
    ] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.", rich_help_panel=MEASUREMENT)] = 1,
    report: ReportFile = None,
    connection: Connection = None,
    stack: Stack = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Models the path, predicts, prints the ranking."""
    from weir.advice import choices, predictions, words
    from weir.modelling import inputs, simulate

    refuse_existing("--report", report)
    refuse_size(size)
    names = _listed(stacks) or [*choices.KERNEL, *choices.OURS]
    for option, name in [*(("--stacks", one) for one in names), ("--stack", stack or "cubic")]:
        choices.refuse(option, name, "flow.0.stack")
    settings = [*choices.windows(_listed(windows)), *choices.queues(_listed(queues))]
    settings += choices.segments(_listed(mss))
    measured = inputs.measure(source, connection, stack)
    if measured.flow is None:
        raise InputError(
            f"{source}: a trace or profile has no flow to compare with; give a capture"
        )
    for warning in measured.warnings:
        output.note(f"warning: {warning}", quiet=quiet)
    work = predictions.workload_of(measured.flow, size)
    settings += choices.streams(_listed(streams), measured.flow, size)
    chosen = choices.options(measured.flow, names, settings)
    check = simulate.check(measured.path, measured.flow)
    found = predictions.predict(measured, check, chosen, work, repeat=repeat, seed=seed)
    said = words.sentence(measured, measured.flow, found)
    steps = list(words.commands(words.best(found)))
    if json:
        rows = [one.as_json() for one in found]
        more = {"advice": said, "commands": steps, "path": measured.path.as_json()}
        output.print_json("advise", rows, check=check.as_json(), **more)
    else:
        output.show("\n".join((said, "", *steps, "")))
        output.show(ranking(measured, found).rich())
    if report is not None:
        from weir.advice.report import write_advice

        command = shlex.join(["weir", *sys.argv[1:]])
        write_advice(measured, check, found, (said, steps), report, command)
        output.note(f"report: {report}", quiet=quiet)


def _listed(text: str | None) -> list[str]:
    return text.split(",") if text else []


def refuse_size(size: str | None) -> None:
    """Refuses what is no size.

    Raises:
        InputError: it is none.
    """
    from weir import _native

    try:
        if size is not None and _native.parse_quantity("size", size) < 1:
            raise InputError(f"--size {size}: use at least one byte, as in 10mb")
    except ValueError as error:
        raise InputError(f"--size {error}") from None


def ranking(measured: Measurement, found: Sequence[Prediction]) -> Grid:
    """The options, the one with the most goodput first."""
    headers = [
        "controller",
        "goodput, Mbit/s",
        "gain",
        "RTT P95, ms",
        "completion, s",
        "CUBIC next to it",
    ]
    rows = [
        [
            one.option.name,
            one.goodput_mbps.text(3),
            one.gain.text(3),
            one.rtt_ms_p95.text(3),
            one.fct_s.text(3) if one.fct_s else "–",
            "–" if one.neighbour is None else f"{one.neighbour:.2f}",
        ]
        for one in found
    ]
    flow = measured.flow
    stack = f"{flow.stack}{', assumed' if flow.is_assumed else ''}" if flow else ""
    note = (
        f"In brackets: 95 % intervals of one transfer. Gain: goodput over that of {stack}, which "
        "was measured. Last column: the goodput of a CUBIC flow on the same path, over its goodput "
        "next to another CUBIC flow."
    )
    return Grid("Predicted on the model of the path", headers, rows, note=note)
