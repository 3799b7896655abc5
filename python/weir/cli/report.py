"""`weir report`: draw the report of old results again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from weir.base.errors import InputError
from weir.base.options import Option, flag
from weir.cli import options, plans, table
from weir.cli.help import Verb
from weir.comparison.contrasts import RELEVANT_SHARE, Chosen, Relevant
from weir.graphics.paper import Paper, PaperOptions
from weir.results.joining import join
from weir.results.results import damage_reported
from weir.running.options import RESULTS, Out

_HELP = (
    "Several directories of weir run and weir compare become one, with the runs of all, and one "
    "report. Cases are named after them: 'A: cubic', 'B: cubic'.\n\n"
    "A file of Flent (.flent.gz), of iperf3 -J or of ss -ti is read too, and becomes a result "
    "directory."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir report results/compare/latest

  weir report results/compare/latest --open

  weir report results/compare/latest --svg --pdf

  weir report results/compare/latest --pdf --width 3.4in --font-size 8 --figure goodput

  weir report results/compare/latest --metric goodput_mbps --metric rtt_ms_p95

  weir report before/compare/latest after/compare/latest

  weir report before.flent.gz iperf3.json"""


def _figures(kind: str) -> Option:
    return Option(f"Also write each figure as {kind}.")


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(report)


@table.with_options_of(PaperOptions)
def report(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="A result directory or file, or several.")
    ],
    png: Annotated[bool, _figures("PNG")] = False,
    svg: Annotated[bool, _figures("SVG")] = False,
    pdf: Annotated[bool, _figures("PDF")] = False,
    relevant: Relevant = RELEVANT_SHARE,
    metric: Chosen = None,
    out: Out = RESULTS,
    opened: options.Open = False,
    **given: Any,
) -> None:
    """Draws the report and prints its path."""
    from weir.api.reports import write  # importing the plotting libraries would slow down `--help`
    from weir.importing import loaded
    from weir.report import Files

    share = plans.relevant_share(relevant)
    with damage_reported(*directories):
        found = [loaded(path, Path(out)) for path in directories]
        results = found[0] if len(found) == 1 else join([one.path for one in found], Path(out))
    wanted = {"png": png, "svg": svg, "pdf": pdf}
    formats = [name for name, is_wanted in wanted.items() if is_wanted]
    for name, value in given.items():
        if value and not formats:
            raise InputError(f"{flag(name)} is of figures in files: give --pdf, --svg or --png too")
    asked = PaperOptions(**given)
    paper = Paper.of(asked.width, asked.font_size) if asked.width or asked.font_size else None
    files = Files(formats, paper, asked.figure or ())
    with damage_reported(*directories):
        path = write(results, files, relevant=share, metrics=metric or ())
    typer.echo(path)
    if opened:
        plans.open_page(path, quiet=False)
