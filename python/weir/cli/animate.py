"""`weir animate`: an animation of the frames of a radio network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weir.animation import FROM, SPAN, Wish, animation
from weir.cli import complete, options, output, plans
from weir.scenario import parse_assignments, read

_HELP = (
    "Play the frames of a radio network, one by one.\n\n"
    "Runs the scenario once in the simulator and writes a self-contained HTML file. It shows each "
    "frame with sender and receiver, collisions, and the marks of routers."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir animate radio-chain

  weir animate radio-chain --from 2s --for 50ms --seed 3

  weir animate mine.toml --set topology.radio.hops=8 --out eight.html"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(animate)


def animate(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A scenario file, or the name of one that comes with Weir.",
            autocompletion=complete.scenarios,
        ),
    ],
    sets: plans.Set = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Random seed of the run.", show_default="the scenario's own"),
    ] = None,
    start: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Start time within the run.")
    ] = FROM,
    span: Annotated[str, typer.Option("--for", metavar="TIME", help="Duration to show.")] = SPAN,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="PATH", help="HTML file to write.", show_default="NAME.html"
        ),
    ] = None,
    trust_controllers: plans.TrustControllers = False,
    quiet: options.Quiet = False,
) -> None:
    """Runs the file, writes the page and prints its path."""
    from weir.report import write_animation  # slow to import

    source = read(file, parse_assignments(sets or [], "--set"))
    with plans.programs(trusted=trust_controllers):
        made = animation(Wish(source, seed, start, span))
    path = write_animation(made, out or Path(f"{made.title}.html"))
    output.note(f"{made.frames} frames; open it in any browser", quiet=quiet)
    typer.echo(path)
