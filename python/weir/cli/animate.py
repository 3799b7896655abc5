"""`weir animate`: a run packet by packet, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from weir.base.disk import write_text
from weir.cli import complete, options, output, plans, table
from weir.controllers.trust import TrustControllers
from weir.laboratory.replay import replay
from weir.report.animation import Excerpt, animation
from weir.scenario.source import parse_assignments, read

_HELP = (
    "Play a run packet by packet, in one HTML file.\n\n"
    "Over links the file is the laboratory's page, which runs the scenario when it opens: packets "
    "move and queues fill. Of a radio network it has each frame with sender and receiver, "
    "collisions, and the marks of routers."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir animate two-flows --from 12s

  weir animate radio-chain

  weir animate radio-chain --from 2s --for 50ms --seed 3

  weir animate mine.toml --set topology.radio.hops=8 --out eight.html"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(animate)


@table.taking(Excerpt)
def animate(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A scenario file, or the name of one that comes with Weir.",
            autocompletion=complete.scenarios,
        ),
    ],
    *,
    sets: options.Sets = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="PATH", help="HTML file to write.", show_default="NAME.html"
        ),
    ] = None,
    trust_controllers: TrustControllers = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Runs the file, writes the page and prints its path."""
    source = read(file, parse_assignments(sets or [], "--set"))
    wish = Excerpt(source, **given)
    with plans.programs(trusted=trust_controllers):
        whole = source.at({})
        if whole.fields["topology"]["kind"] != "radio":
            path = out or Path(f"{whole.name}.html")
            write_text(path, replay(wish, whole))
            shown = "the page simulates the run"
        else:
            from weir.report import write_animation  # slow to import

            made = animation(wish)
            path = write_animation(made, out or Path(f"{made.title}.html"))
            shown = f"{made.frames} frames"
    output.note(f"{shown}; open it in any browser", quiet=quiet)
    typer.echo(path)
