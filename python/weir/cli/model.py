"""`weir model`: a scenario file of the path behind a capture."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weir.base.errors import InputError
from weir.base.grid import Grid, counted, number
from weir.base.options import OUTPUT, Option
from weir.cli import options, output, screen, table
from weir.cli.help import Verb
from weir.modelling import inputs

if TYPE_CHECKING:
    from weir.modelling.measured import Measurement
    from weir.modelling.simulate import Check

_HELP = """\
INPUT is a capture made at the sender, a result directory, also of weir test, a trace of mahimahi,
or a profile of iBox.
Estimates rate, delay, jitter, queue, random loss, policer, reordering and steady other traffic,
each with a 95 % interval. Then simulates the measured flow on the model and compares.

Exit codes: 0 modelled, 2 the input has too little. See docs/model.md."""

_EXAMPLES = """[bold]Examples[/bold]

  weir model slow.pcapng -o path.toml

  weir model slow.pcapng --stack bbr --report path.html

  weir model results/compare/latest --json"""

ReportFile = Annotated[
    Path | None,
    Option("Write a report with pictures to this new file.", OUTPUT, metavar="FILE"),
]


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(model)


@table.with_options_of(inputs.measure)
def model(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT", help="Capture, result directory, mahimahi trace or iBox profile."
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        Option("Write the scenario to this new file.", OUTPUT, metavar="FILE", short="-o"),
    ] = None,
    report: ReportFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Models the path, checks the model, prints both."""
    from weir.advice import choices
    from weir.base.disk import write_text
    from weir.modelling import simulate, text

    choices.refuse("--stack", given["stack"] or "cubic", "flow.0.stack")
    refuse_existing("--out", out)
    refuse_existing("--report", report)
    measured = inputs.measure(source, **given)
    check = simulate.check(measured.path, measured.flow) if measured.flow else None
    refusal = check.refusal if check else None
    warnings = (*filter(None, [refusal]), *measured.warnings)
    measured = replace(measured, warnings=warnings)
    for warning in warnings:
        output.note(f"warning: {warning}", quiet=quiet)
    if json:
        output.print_json("model", [_row(measured, check)])
    else:
        if refusal:
            screen.show(f"Warning: {refusal}.\n")
        screen.show(parameters(measured).rich())
        if check:
            screen.show(comparison(check).rich())
    if out is not None:
        write_text(out, text.scenario_text(measured, check))
        output.note(f"scenario: {out}", quiet=quiet)
    if report is not None:
        from weir.modelling.report import write_model

        write_model(measured, check, report, shlex.join(["weir", *sys.argv[1:]]))
        output.note(f"report: {report}", quiet=quiet)


def refuse_existing(name: str, file: Path | None) -> None:
    """Refuses to overwrite `file`.

    Raises:
        InputError: it is there.
    """
    if file is not None and file.exists():
        raise InputError(f"{name} {file}: is there already; name a new file")


def parameters(measured: Measurement) -> Grid:
    """The parameters of the model."""
    rows = [[title, value, unit] for _, title, value, unit in measured.path.named()]
    if measured.path.over_time:
        rows.append(["rate over time", measured.path.over_time, ""])
    if cross := measured.path.cross_mbps:
        mean = sum(cross) / len(cross)
        rows.append(["other traffic", f"{number(mean)} in the mean of {len(cross)} s", "Mbit/s"])
    if measured.path.loss_run:
        rows.append(["random losses in a row", number(measured.path.loss_run, 2), "packets"])
    note = "Rates and sizes count IP bytes. «At least»: the flow never filled it."
    title = f"Path of {measured.source}"
    return Grid(title, ["parameter", "estimate (95 % interval)", "unit"], rows, notes=1, note=note)


def comparison(check: Check) -> Grid:
    """The flow as measured, and on the model."""
    from weir.modelling.measured import COMPARED

    flow = check.flow
    rows = []
    for name, (title, unit, factor) in COMPARED.items():
        error = check.error(name)
        mean = check.repeated[name].mean
        rows.append(
            [
                f"{title}, {unit}",
                number(getattr(flow, name) * factor, 4),
                "–" if mean is None else number(mean * factor, 4),
                "–" if error is None else f"{error:+.1%}",
            ]
        )
    stack = f"{flow.stack}{', assumed' if flow.is_assumed else ''}"
    note = (
        f"The measured flow ({stack}), simulated on the model with {counted(check.runs, 'seed')}."
    )
    headers = ["", "measured", "on the model", "difference"]
    return Grid("How well the model repeats the measurement", headers, rows, note=note)


def _row(measured: Measurement, check: Check | None) -> dict[str, object]:
    flow = measured.flow
    return {
        "source": measured.source,
        "path": measured.path.as_json(),
        "flow": flow.as_json() if flow else None,
        "check": check.as_json() if check else None,
        "warnings": list(measured.warnings),
    }
