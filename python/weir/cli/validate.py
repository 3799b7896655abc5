"""`weir validate`: compares the simulator with Linux, or radio with theory and papers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group

from weir import validation
from weir.base.errors import InputError
from weir.base.grid import Grid
from weir.cli import options, output, plans
from weir.radio_validation import RadioComparison
from weir.radio_validation import comparison as radio_comparison
from weir.radio_validation import summary as radio_words
from weir.recordings.judge import Row
from weir.recordings.outcome import Validation
from weir.validation import spread, summary
from weir.validation.kernel import Comparison

_HELP = """Run the same scenarios in the simulator and in Linux's TCP, and compare.

By default the kernel is this machine's, in real time, which requires root. With
[bold]--virtual[/bold] it is a guest's in virtual time, which requires `weir kernel build` once.
With [bold]--random N[/bold] a guest runs one flow on each of N random paths, with all congestion
controls of its kernel. With [bold]--reference[/bold] it is that of recorded runs. With
[bold]--radio[/bold] there is no kernel: wireless networks are compared with arithmetic, Bianchi's
model and published measurements.

Prints per case and flow the simulator's value, its ratio to the kernel's, and whether that is
within the tolerance. Cases that cannot run are listed with the reason. The report has a figure over
time for each case. docs/validation lists cases, metrics and tolerances."""

_EXAMPLES = """[bold]Examples[/bold]

  weir validate

  weir validate --virtual --case '10m-1bdp-*' --json > validation.json

  weir validate --virtual --random 100 --jobs 2

  weir validate --reference tests/truth

  weir validate --radio"""

MOST_RANDOM = 10_000
"""Random paths of one command; a thousand take hours."""

Case = Annotated[
    list[str] | None,
    typer.Option(
        "--case",
        metavar="GLOB",
        help="Only cases with matching names; may be repeated.",
        show_default="all",
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(validate)


_Virtual = Annotated[
    bool, typer.Option("--virtual", help="Compare with a guest's kernel, in virtual time.")
]
_Radio = Annotated[
    bool, typer.Option("--radio", help="Compare wireless networks with theory and papers.")
]
_Reference = Annotated[
    Path | None,
    typer.Option("--reference", metavar="DIR", help="Compare with recorded traces in DIR."),
]
_Random = Annotated[
    int | None,
    typer.Option(
        "--random",
        min=1,
        max=MOST_RANDOM,
        metavar="N",
        help="With --virtual: compare on N random paths with one flow each.",
    ),
]
_Size = Annotated[
    str | None,
    typer.Option(
        "--size", metavar="|".join(validation.SIZES), help="Number of cases and length of runs."
    ),
]
_Repeat = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Runs per case; in virtual time only of cases with randomness.",
        show_default=str(validation.REPEAT),
    ),
]
_Seed = Annotated[int | None, typer.Option(help="Random seed of the first run.", show_default="1")]
_Seeds = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="With --reference: seeds per case with randomness.",
        show_default=str(validation.SEEDS),
    ),
]


def validate(
    virtual: _Virtual = False,
    kernel: plans.Kernel = None,
    radio: _Radio = False,
    reference: _Reference = None,
    # The former name of --reference, for one release.
    truth: Annotated[Path | None, typer.Option("--truth", metavar="DIR", hidden=True)] = None,
    random: _Random = None,
    case: Case = None,
    size: _Size = None,
    repeat: _Repeat = None,
    seed: _Seed = None,
    seeds: _Seeds = None,
    jobs: plans.Jobs = None,
    out: plans.Out = plans.OutDefault,
    resume: plans.Resume = False,
    dry_run: plans.DryRun = False,
    no_report: plans.NoReport = False,
    opened: plans.Open = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Runs the cases, prints the rows, draws the report."""
    report = plans.reporting(no_report=no_report, opened=opened)
    plans.choose_kernel(kernel, virtual=virtual)
    how = plans.how(out, jobs, resume=resume, quiet=quiet)
    if reference is not None:
        _refuse("with --reference", truth=truth)
    reference = reference or truth
    if reference is not None:
        own: dict[str, object] = {"radio": radio or None, "virtual": virtual or None}
        own |= {"random": random, "dry-run": dry_run or None}
        _refuse("with --reference", size=size, repeat=repeat, seed=seed, **own)
        seeds = seeds or validation.SEEDS
        found = validation.validate(reference, cases=case or (), seeds=seeds, **how)
    else:
        _refuse("without --reference", seeds=seeds)
        compared: Comparison | RadioComparison
        chosen: dict[str, Any] = {"cases": case or (), "seed": 1 if seed is None else seed}
        if random is not None:
            _refuse("with --random", size=size, radio=radio or None)
            compared = _on_random_paths(random, virtual, repeat, chosen)
        elif radio:
            _refuse("with --radio", virtual=virtual or None)
            compared = radio_comparison(size=size or validation.SMALL, repeat=repeat, **chosen)
        else:
            repeat = repeat or validation.REPEAT
            compared = validation.comparison(
                virtual=virtual, size=size or validation.SMALL, repeat=repeat, **chosen
            )
        if dry_run:
            plans.list_plan("validate", compared.plan, as_json=json)
            return
        found = compared.run_plan(**how)
    _print(found, radio=radio, random=random is not None, as_json=json)
    plans.finish(found.results, report, quiet=quiet)


def _print(found: Validation, *, radio: bool, random: bool, as_json: bool) -> None:
    """Prints the rows of what was compared."""
    if as_json:
        spreads = spread.by_controller(found.rows) if random else None
        more = {} if spreads is None else {"controllers": spreads}
        output.print_json("validate", found.rows, score=found.score, **more)
    elif radio:
        grid = Grid(radio_words.TITLE, *radio_words.table(found.rows), names=2)
        _show(grid, radio_words.UNITS, radio_words.findings(found.rows))
    elif random:
        _show_spread(found.rows)
    else:
        grid = Grid(summary.TITLE, *summary.table(found.rows), names=2)
        _show(grid, summary.UNITS, summary.findings(found.rows))


def _on_random_paths(
    count: int, virtual: bool, repeat: int | None, chosen: dict[str, Any]
) -> Comparison:
    if not virtual:
        raise InputError(
            f"--random {count}: it compares with a guest in virtual time; add --virtual"
        )
    if repeat is not None:
        chosen["simulations"] = repeat
    return validation.random_comparison(count, **chosen)


def _refuse(where: str, **given: object) -> None:
    """Refuses options that have no effect there."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"--{name} has no effect {where}; leave it out")


def _show_spread(rows: Sequence[Row]) -> None:
    """How the rows are distributed, and those that do not hold."""
    spreads = spread.by_controller(rows)
    failing = {row["case"] for row in rows if row["verdict"] in ("differs", "inconclusive")}
    if failing:
        table = summary.table([row for row in rows if row["case"] in failing])
        _show(Grid(summary.TITLE, *table, names=2), summary.UNITS, ())
    grid = Grid(spread.TITLE, spread.HEADERS, spread.table(spreads), names=1, note=spread.NOTE)
    sentences = [*spread.sentences(spreads), *summary.findings(rows), *spread.by_chance(rows)]
    output.show(Group(grid.rich(), *output.points(sentences)))


def _show(grid: Grid, units: str, sentences: Iterable[str]) -> None:
    noted = replace(grid, note=f"{units[:1].upper()}{units[1:]}.")
    output.show(Group(noted.rich(), *output.points(sentences)))
