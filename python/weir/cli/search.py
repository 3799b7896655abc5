"""`weir search`: networks where a transport does badly."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer
from rich.text import Text

from weir import _native
from weir.base.disk import write_text
from weir.base.errors import InputError
from weir.base.options import chosen
from weir.cli import options, output, plans, screen, table
from weir.cli.help import Verb
from weir.running.execution import Execution
from weir.scenario.plans import World, scenario_plan
from weir.scenario.source import SIM, Overrides, parse_assignments, read
from weir.search import findings, goals, hunt
from weir.search import space as spaces
from weir.search.findings import Finding, Target
from weir.search.goals import Aim
from weir.search.hunt import SearchOptions
from weir.search.loop import Tell

if TYPE_CHECKING:
    from weir.graphics.figure import Figure

_HELP = (
    "Goals are "
    + ", ".join(f"[bold]{name}[/bold]" for name in goals.WEAKNESSES)
    + "; without one, the first five in turn. Each has its own space of networks, which "
    "--space replaces.\n\n"
    "What is found is shrunk to the keys that matter and written as a scenario, as a case for weir "
    "conform, and as a picture of the decisive seconds. See docs/search/README.md.\n\n"
    "Exit codes: 0 the search ended, whatever it found, 2 bad input."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir search --stack copa

  weir search starve --stack bbr --budget 2000

  weir search regress reno cubic --budget 5min

  weir search disagree sim kernel --stack cubic --budget 200

  weir search --stack copa --against cubic --space bounds.toml --minimise 'share("copa")'"""

_MOMENT_SHARE = 0.15
_SAMPLES = 800


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(search)


@table.with_options_of(Aim, SearchOptions, Execution, without=["pcap"])
def search(
    goal: Annotated[
        list[str] | None,
        typer.Argument(metavar="GOAL...", help="What to look for."),
    ] = None,
    *,
    sets: options.Sets = None,
    world: World = SIM,
    virtual: options.Virtual = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Searches goal by goal, and prints what was found."""
    note = partial(output.note, quiet=quiet)
    tried = SearchOptions(**chosen(SearchOptions, given))
    how = Execution(**plans.execution(given, quiet=quiet))
    aim = Aim(**chosen(Aim, given))
    keys = spaces.read(aim.space) if aim.space is not None else {}
    overrides = parse_assignments(sets or [], "--set")
    in_world = plans.world_of(world, virtual=virtual)
    found = []
    for target in _targets(goal or [], aim, keys, overrides, in_world):
        found.append(hunt.search(target, tried, how, note))
        _write(found[-1], how, note, has_picture=not quiet)
    if json:
        output.print_json("search", [findings.as_json(finding) for finding in found])
    else:
        screen.show(Text("\n".join(line for one in found for line in findings.lines_of(one))))


def _targets(
    words: Sequence[str], aim: Aim, keys: spaces.Templates, sets: Overrides, world: str
) -> list[Target]:
    scenario = None if aim.scenario is None else read(aim.scenario)
    if aim.minimise is not None or aim.maximise is not None:
        wanted = [goals.own(aim)]
    else:
        wanted = goals.hunts(words, aim.stack, aim.against)
    if aim.until is not None and not math.isfinite(aim.until):
        raise InputError(f"--until {aim.until}: {aim.until} is not allowed; a number is needed")
    if aim.until is not None:
        wanted = [replace(goal, threshold=aim.until) for goal in wanted]
    if aim.keep_time:
        wanted = [replace(goal, keeps_time=True) for goal in wanted]
    return [Target.of(goal, keys, sets, world, scenario) for goal in wanted]


def _write(finding: Finding, how: Execution, note: Tell, *, has_picture: bool) -> None:
    """Writes scenario, case and picture next to the journal."""
    folder = Path(finding.journal)
    file = folder / "found.toml"
    write_text(file, findings.scenario_text(finding).rstrip("\n"))
    note(f"Scenario: {file}")
    if finding.target.crosses_worlds:
        there = folder / "found-there.toml"
        text = findings.scenario_text(finding, finding.target.reference)
        write_text(there, text.rstrip("\n"))
        note(f"The same in the guest: weir run {there} --world kernel --virtual")
    else:  # a suite runs all stacks in one world
        case, command = folder / "conform.toml", shlex.join(["weir", *sys.argv[1:]])
        write_text(case, findings.conform_text(finding, command).rstrip("\n"))
        note(f"Case: weir conform {case}")
    if has_picture and finding.value.mean is not None:
        from weir.search import pictures  # drawing libraries load slowly

        note(pictures.drawn(folder, lambda: _picture(finding, how, file)))


def _picture(finding: Finding, how: Execution, file: Path) -> Figure:
    """Runs the scenario once more with samples, and draws its decisive seconds."""
    from weir.search import pictures  # drawing libraries load slowly

    duration = finding.scenario().fields["measure"]["duration"]
    seconds = _native.parse_quantity("time", str(duration))
    sampled = (("measure.sample_interval", f"{max(1, round(1e3 * seconds / _SAMPLES))}ms"),)
    source = read(file, sampled).in_world(finding.target.source.world)
    plan = scenario_plan(source, {}, repeat=1, seed=1)
    inner = replace(how, out=Path(finding.journal), resume=False, show_progress=False)
    results = plans.run_plan(plan, plans.Reporting.NONE, **vars(inner))
    names = results.flows.select("flow", pl.col("name").cast(pl.String))
    samples = results.samples.join(names, on="flow")
    at = findings.decisive(_curves(samples))
    width = _MOMENT_SHARE * seconds
    return pictures.moment(samples, width if at is None else at, width)


def _curves(samples: pl.DataFrame) -> Mapping[str, Sequence[tuple[float, float]]]:
    """The goodput of each flow over time, in fortieths of the run."""
    width = float(samples["t_s"].max() or 1.0) / 40  # type: ignore[arg-type]
    slices = (pl.col("t_s") / width).floor() * width
    means = samples.group_by("name", slices.alias("at"), maintain_order=True).agg(
        pl.col("goodput_mbps").mean()
    )
    found: dict[str, list[tuple[float, float]]] = {}
    for name, at, value in means.sort("at").iter_rows():
        found.setdefault(str(name), []).append((at, value or 0.0))
    return found
