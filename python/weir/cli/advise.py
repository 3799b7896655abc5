"""`weir advise`: what would help on the path behind a capture."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weir.advice import choices
from weir.advice.options import AdviceOptions
from weir.base.errors import InputError
from weir.base.options import chosen
from weir.cli import options, output, screen, table
from weir.cli.help import Verb
from weir.cli.model import ReportFile, refuse_existing
from weir.modelling import inputs

if TYPE_CHECKING:
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
    from weir.advice import decision, outcomes, words
    from weir.advice.table import ranking

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
    settings += tried.shared(measured.flow)
    options_ = choices.options(measured.flow, [*names, *_tested(measured, tried)], settings)
    found, check = outcomes.outcome(
        measured, options_, tried.size, repeat=tried.repeat, seed=tried.seed
    )
    for warning in (*filter(None, [check.refusal]), *measured.warnings):
        output.note(f"warning: {warning}", quiet=quiet)
    decided = decision.decide(found, measured.flow)
    said = words.sentence(measured, measured.flow, decided)
    steps = list(words.commands(decided))
    if json:
        rows = [{**one.as_json(), "role": str(decided.role(one))} for one in decided.found]
        more = {"advice": said, "verdict": str(decided.verdict), "commands": steps}
        path = measured.path.as_json()
        output.print_json("advise", rows, check=check.as_json(), path=path, **more)
    else:
        screen.show("\n".join((said, "", *steps, *([""] if steps else []))))
        screen.show(ranking(decided, measured.flow).rich())
    if report is not None:
        from weir.advice.report import write_advice

        command = shlex.join(["weir", *sys.argv[1:]])
        write_advice(measured, check, decided, (said, steps), report, command)
        output.note(f"report: {report}", quiet=quiet)


def _tested(measured: Measurement, tried: AdviceOptions) -> list[str]:
    """The controllers that were measured on the path itself, unless others are wanted."""
    return [] if tried.stacks else [load.stack for load in measured.loads]
