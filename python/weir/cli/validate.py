"""`weir validate`: compares the simulator with Linux, or radio with theory and papers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from rich.console import Group

from weir import validation
from weir.base.errors import InputError
from weir.base.grid import Grid
from weir.base.options import Option, chosen, parameters
from weir.cli import options, output, plans, screen, table
from weir.cli.help import Verb
from weir.radio_validation import RadioComparison
from weir.radio_validation import comparison as radio_comparison
from weir.radio_validation import summary as radio_words
from weir.recordings.judge import Row
from weir.recordings.outcome import Validation
from weir.running.execution import Execution
from weir.validation import spread, summary
from weir.validation.kernel import Comparison

_HELP = """By default the kernel is this machine's, in real time, which requires root. With
[bold]--virtual[/bold] it is a guest's in virtual time, which requires `weir stack kernel` once.
With [bold]--random N[/bold] a guest runs N random paths of 25 kinds, with all congestion controls
of its kernel. With [bold]--reference[/bold] it is that of recorded runs. With
[bold]--radio[/bold] there is no kernel: wireless networks are compared with arithmetic, Bianchi's
model and published measurements.

With [bold]--record[/bold] guests record traces as in tests/truth/virtual, with each of nine
congestion controls: one flow for 30 s. The path has 10 Mbit/s, 40 ms and a queue of 1 BDP.

Prints per case and flow the simulator's value, its ratio to the kernel's, and whether that is
within the tolerance. Cases that cannot run are listed with the reason. The report has a figure over
time for each case. docs/validation lists cases, metrics and tolerances."""

_EXAMPLES = """[bold]Examples[/bold]

  weir validate

  weir validate --virtual --case '10m-1bdp-*' --json > validation.json

  weir validate --virtual --random 100 --jobs 2

  weir validate --reference tests/truth

  weir validate --virtual --record traces

  weir validate --radio"""

MOST_RANDOM = 10_000
"""Random paths of one command; a thousand take hours."""


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(validate)


_Radio = Annotated[bool, Option("Compare wireless networks with theory and papers.")]
_Reference = Annotated[Path | None, Option("Compare with recorded traces in DIR.", metavar="DIR")]
_Record = Annotated[
    Path | None,
    Option(
        "With {virtual}: record traces of Linux's TCP in guests, for {reference}, and end.",
        metavar="DIR",
    ),
]
_Random = Annotated[
    int | None,
    Option(
        "With {virtual}: compare on N random paths, kind by kind.",
        metavar="N",
        min=1,
        max=MOST_RANDOM,
    ),
]


@table.with_options_of(
    validation.comparison, validation.validate, Execution, without=["pcap", "dask"]
)
def validate(
    *,
    kernel: options.Kernel = None,
    radio: _Radio = False,
    reference: _Reference = None,
    record: _Record = None,
    random: _Random = None,
    dry_run: options.DryRun = False,
    no_report: options.NoReport = False,
    opened: options.Open = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Runs the cases, prints the rows, draws the report."""
    report = plans.reporting(no_report=no_report, opened=opened)
    plans.choose_kernel(kernel, virtual=given["virtual"])
    if record is not None:
        _record_traces(record, given, quiet=quiet)
        return
    how = plans.execution(given, quiet=quiet)
    if reference is not None:
        unused = ("virtual", "size", "repeat", "seed")
        chosen_too = {"radio": radio, "random": random, "dry-run": dry_run}
        _refuse("with --reference", **{name: given[name] for name in unused}, **chosen_too)
        found = validation.validate(reference, **chosen(validation.validate, given), **how)
    else:
        _refuse("without --reference", seeds=given["seeds"])
        compared = _compared(given, radio=radio, random=random)
        if dry_run:
            plans.list_plan("validate", compared.plan, as_json=json)
            return
        found = compared.run_plan(**how)
    _print(found, radio=radio, random=random is not None, as_json=json)
    plans.finish(found.results, report, quiet=quiet)


def _record_traces(directory: Path, given: dict[str, Any], *, quiet: bool) -> None:
    """Runs every case in a guest and writes the folder."""
    if not given["virtual"]:
        raise InputError(f"--record {directory}: it records in guests; add --virtual")
    from weir.recordings.record import CASES, record
    from weir.running.runner import default_jobs

    def report(name: str) -> None:
        output.note(f"{name} ({list(CASES).index(name) + 1} of {len(CASES)})", quiet=quiet)

    record(directory, jobs=given["jobs"] or default_jobs(), report=report)


def _print(found: Validation, *, radio: bool, random: bool, as_json: bool) -> None:
    """Prints the rows of what was compared."""
    if as_json:
        spreads = spread.by_controller(found.rows) if random else None
        kinds = {"kinds": spread.by_kind(found.rows)}
        more = {} if spreads is None else {**kinds, "controllers": spreads}
        output.print_json("validate", found.rows, score=found.score, **more)
    elif radio:
        grid = Grid(radio_words.TITLE, *radio_words.table(found.rows), names=2)
        _show(grid, radio_words.UNITS, radio_words.findings(found.rows))
    elif random:
        _show_spread(found.rows)
    else:
        grid = Grid(summary.TITLE, *summary.table(found.rows), names=2)
        _show(grid, summary.UNITS, summary.findings(found.rows))


def _compared(
    given: dict[str, Any], *, radio: bool, random: int | None
) -> Comparison | RadioComparison:
    """Returns what is to run."""
    common = {name: given[name] for name in ("cases", "seed")}
    if random is not None:
        _refuse("with --random", size=given["size"], radio=radio)
        if not given["virtual"]:
            raise InputError(
                f"--random {random}: it compares with a guest in virtual time; add --virtual"
            )
        if given["repeat"] is not None:
            common["repeat"] = given["repeat"]
        return validation.random_comparison(random, **common)
    if radio:
        _refuse("with --radio", virtual=given["virtual"])
        return radio_comparison(size=given["size"], repeat=given["repeat"], **common)
    return validation.comparison(**chosen(validation.comparison, given))


def _refuse(where: str, **given: object) -> None:
    """Refuses options that have no effect there."""
    for name, value in given.items():
        if value not in (None, False, _DEFAULTS.get(name)):
            raise InputError(f"--{name} has no effect {where}; leave it out")


_DEFAULTS = {
    one.name: one.default
    for source in (validation.comparison, validation.validate)
    for one in parameters(source)
}


def _show_spread(rows: Sequence[Row]) -> None:
    """How the rows are distributed, and those that do not hold."""
    spreads = spread.by_controller(rows)
    failing = {row["case"] for row in rows if row["verdict"] in ("differs", "inconclusive")}
    if failing:
        cells = summary.table([row for row in rows if row["case"] in failing])
        _show(Grid(summary.TITLE, *cells, names=2), summary.UNITS, ())
    grid = Grid(spread.TITLE, spread.HEADERS, spread.table(spreads), names=1, note=spread.NOTE)
    kinds = spread.by_kind(rows)
    by_kind = Grid(
        *(spread.KINDS_TITLE, spread.KINDS_HEADERS, spread.kinds_table(kinds)),
        names=2,
        note=spread.KINDS_NOTE,
    )
    sentences = [
        *spread.kinds_sentences(kinds),
        *spread.sentences(spreads),
        *summary.findings(rows),
        *spread.by_chance(rows),
    ]
    screen.show(Group(grid.rich(), by_kind.rich(), *screen.points(sentences)))


def _show(grid: Grid, units: str, sentences: Iterable[str]) -> None:
    noted = replace(grid, note=f"{units[:1].upper()}{units[1:]}.")
    screen.show(Group(noted.rich(), *screen.points(sentences)))
