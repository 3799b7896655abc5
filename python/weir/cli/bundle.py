"""`weir bundle`: results as one file that repeats itself."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from weir.base.grid import Grid
from weir.base.options import Option
from weir.bundle.checking import Repeated
from weir.bundle.checking import check as check_bundle
from weir.bundle.writing import SUFFIX, write
from weir.cli import options, output, screen, table
from weir.cli.help import Verb
from weir.results.results import damage_reported, load

_HELP = (
    f"Writes NAME{SUFFIX}: scenarios, seeds, manifest, tables, their description as an RO-Crate, "
    "a Dockerfile and a README. The same results give the same bytes.\n\n"
    "With [bold]--check[/bold] it repeats the runs of such a file, or of the folder that it was "
    "unpacked into, and compares the hash over all deliveries of each. Exits with 1 if one "
    "differs, or none could be repeated."
)

_EXAMPLES = f"""[bold]Examples[/bold]

  weir bundle results/compare/latest --out artefact{SUFFIX}

  weir bundle --check artefact{SUFFIX}"""


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(bundle)


@table.with_options_of(write)
def bundle(
    path: Annotated[
        Path, typer.Argument(metavar="DIR", help="A result directory; with --check a bundle.")
    ],
    *,
    check: Annotated[bool, Option("Repeat the runs of a bundle.")] = False,
    json: options.Json = False,
    **given: Any,
) -> None:
    """Writes or checks a bundle."""
    if not check:
        with damage_reported(path):
            written = write(load(path), **given)
        if json:
            row = {"file": str(written), "bytes": written.stat().st_size}
            output.print_json("bundle", [row])
        else:
            typer.echo(written)
        return
    with damage_reported(path):
        found = check_bundle(path)
    if json:
        output.print_json("bundle", [asdict(one) for one in found])
    else:
        rows = [(r.label, str(r.repeat), str(r.seed), r.verdict, r.reason) for r in found]
        names = ("case", "repeat", "seed", "verdict", "reason")
        screen.show(Grid(_counted(found), names, rows, names=1).rich())
    verdicts = {one.verdict for one in found}
    if "differs" in verdicts or "same" not in verdicts:
        raise typer.Exit(1)


def _counted(found: list[Repeated]) -> str:
    same = sum(one.verdict == "same" for one in found)
    return f"{same} of {len(found)} runs are the same"
