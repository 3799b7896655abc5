"""The command `python -m bench.udp`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.text import Text

from bench import command
from bench.udp import measure, peers, show
from bench.udp.cases import Case, cases
from weir.cli import output, screen
from weir.processes import netns
from weir.transfer.ends import Programs
from weir.transfer.site import Site


def bench(
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each contender.")] = 7,
    only: Annotated[str, typer.Option(help="Cases whose name has this in it.")] = "",
    with_peers: Annotated[
        bool,
        typer.Option(
            "--peers", help="QUIC too (quiche and quinn, built with cargo first), and SRT."
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measures file transfers: ours next to the kernel's TCP, and with --peers QUIC and SRT."""
    chosen = [case for case in cases() if only in case.name]
    if not chosen:
        names = "; ".join(case.name for case in cases())
        raise typer.BadParameter(f"no case has '{only}' in its name; cases: {names}")
    if (obstacle := netns.missing()) is not None:
        chosen = [case for case in chosen if case.network.kind == "loopback"]
        output.note(f"Nothing over links between namespaces: {obstacle}", quiet=False)
    programs = _peers() if with_peers else {}
    rows: list[measure.Row] = []
    with Site() as site:
        for case in chosen:
            output.note(case.name, quiet=not sys.stderr.isatty())
            wanted: Case = case.with_peers(programs)
            rows += measure.rows(wanted, measure.run_plan(site, wanted, rounds, programs))
        place = site.place
    if json:
        output.print_json("bench-udp", rows, files=place)
        return
    for grid in show.grids(rows):
        screen.show(grid.rich())
    held, missed, unknown = show.held(rows)
    verdict = f"Goals: {held} held, {missed} missed, {unknown} not measured."
    screen.show(Text(f"{verdict}\n{show.SETTINGS} Files are in {place}."))


def _peers() -> dict[str, Programs]:
    """The programs of other protocols; says which are missing here, and why."""
    programs, reasons = peers.find()
    for reason in reasons:
        output.note(f"Skipped: {reason}", quiet=False)
    return programs


if __name__ == "__main__":
    command.run(bench, "bench.udp")
