"""`weir advise`: what would help on the path behind a capture."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weir.advice import choices
from weir.advice.options import AdviceOptions
from weir.base.errors import InputError
from weir.base.grid import Grid
from weir.base.options import chosen
from weir.cli import options, output, table
from weir.cli.help import Verb
from weir.cli.model import ReportFile, refuse_existing
from weir.modelling import inputs

if TYPE_CHECKING:
    from weir.advice.predictions import Prediction
    from weir.modelling.measured import Measurement

_HELP = """INPUT is a capture made at the sender, or a result directory.
Models the path as weir model does, simulates the transfer with each controller on it, and ranks
them. Each repeat draws the path from the intervals of the model.

Exit codes: 0 predicted, 2 the input has too little. See docs/advise.md."""

_EXAMPLES = """[bold]Examples[/bold]

  weir advise slow.pcapng

  weir advise slow.pcapng --stacks bbr,illinois,vegas --size 10mb --report advice.html

  weir advise slow.pcapng --stacks cubic,bbr --queues fq-codel,2bdp --streams 4"""


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(advise)


@table.with_options_of(AdviceOptions, inputs.measure)
def advise(
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="Capture, or result directory.")],
    *,
    report: ReportFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Models the path, predicts, prints the ranking."""
    from weir.advice import predictions, words
    from weir.modelling import simulate

    refuse_existing("--report", report)
    tried = AdviceOptions(**chosen(AdviceOptions, given))
    names = tried.names()
    choices.refuse("--stack", given["stack"] or "cubic", "flow.0.stack")
    settings = tried.settings()
    measured = inputs.measure(source, **chosen(inputs.measure, given))
    if measured.flow is None:
        raise InputError(
            f"{source}: a trace or profile has no flow to compare with; give a capture"
        )
    for warning in measured.warnings:
        output.note(f"warning: {warning}", quiet=quiet)
    work = predictions.workload_of(measured.flow, tried.size)
    settings += tried.shared(measured.flow)
    options_ = choices.options(measured.flow, names, settings)
    check = simulate.check(measured.path, measured.flow)
    found = predictions.predict(
        measured, check, options_, work, repeat=tried.repeat, seed=tried.seed
    )
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
