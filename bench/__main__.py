"""The command `python -m bench`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.text import Text

from bench import command, measure, ns3, show
from bench.cases import Case, Ns3Case, cases
from weir.cli import output, screen


def bench(
    repeat: Annotated[int, typer.Option(min=1, help="Runs per case; the median counts.")] = 3,
    scale: Annotated[
        float, typer.Option(min=1e-4, max=1, help="Simulate this share of each case's time.")
    ] = 1.0,
    only: Annotated[str, typer.Option(help="Cases whose group or name has this in it.")] = "",
    with_ns3: Annotated[
        bool, typer.Option("--ns3/--no-ns3", help="Compare with ns-3 if it is installed.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measures how fast the simulator is, and compares it with ns-3 if that is installed."""
    chosen = [c.scaled(scale) for c in cases() if only in c.group or only in c.name]
    if not chosen:
        groups = ", ".join(dict.fromkeys(c.group for c in cases()))
        raise typer.BadParameter(f"no case has '{only}' in its name; groups: {groups}")
    obstacle = ns3.missing() if with_ns3 else "left out by --no-ns3."
    rows = list(_measure(chosen, repeat, with_ns3=obstacle is None))
    if json:
        output.print_json("bench", rows)
    else:
        for grid in show.grids(rows):
            screen.show(grid.rich())
        screen.show(Text(show.SETTINGS))
    if obstacle:
        output.note(f"No comparison with ns-3: {obstacle}", quiet=False)


def _measure(chosen: list[Case], repeat: int, *, with_ns3: bool) -> Iterator[measure.Row]:
    with TemporaryDirectory(prefix="weir-bench-") as directory:
        with_program = [case for case in chosen if with_ns3 and isinstance(case, Ns3Case)]
        needed = {case.ns3_program for case in with_program if case.ns3_sim_s}
        programs = {name: ns3.build(Path(directory), name) for name in sorted(needed)}
        for case in chosen:
            output.note(f"{case.group}: {case.name}", quiet=not sys.stderr.isatty())
            if with_ns3 and isinstance(case, Ns3Case) and case.ns3_sim_s:
                yield from ns3.compare(programs[case.ns3_program], case, repeat)
            else:
                yield measure.weir(case, repeat)


if __name__ == "__main__":
    command.run(bench, "bench")
