"""`weir search`: networks where a transport does badly."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.console import Group
from rich.text import Text

from weir.base.disk import write_text
from weir.base.errors import InputError
from weir.base.options import chosen
from weir.cli import options, output, plans, screen, table
from weir.cli.help import Verb
from weir.running.execution import Execution
from weir.scenario.plans import World, scenario_plan
from weir.scenario.source import SIM, Overrides, Source, parse_assignments, read
from weir.search import findings, goals, hunt
from weir.search import space as spaces
from weir.search.expressions import Expression
from weir.search.findings import Finding, Target
from weir.search.goals import Aim
from weir.search.hunt import SearchOptions

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
    tried = SearchOptions(**chosen(SearchOptions, given))
    how = Execution(**plans.execution(given, quiet=quiet))
    aim = Aim(**chosen(Aim, given))
    keys = spaces.read(aim.space) if aim.space is not None else {}
    overrides = parse_assignments(sets or [], "--set")
    in_world = plans.world_of(world, virtual=virtual)
    path = None if aim.scenario is None else read(aim.scenario)
    if aim.minimise is not None or aim.maximise is not None:
        targets = [_own(aim, path, keys, overrides, in_world)]
    else:
        hunts = goals.hunts(goal or [], aim.stack, aim.against)
        targets = [Target.of(one, keys, overrides, in_world, path) for one in hunts]
    if aim.until is not None:
        if not math.isfinite(aim.until):
            raise InputError(f"--until {aim.until}: {aim.until} is not allowed; a number is needed")
        targets = [replace(target, threshold=aim.until) for target in targets]
    if aim.keep_time:
        targets = [replace(target, keeps_time=True) for target in targets]
    found = []
    for target in targets:
        finding = hunt.search(target, tried, how, lambda text: output.note(text, quiet=quiet))
        _write(finding, how, quiet=quiet)
        found.append(finding)
    if json:
        output.print_json("search", [findings.as_json(finding) for finding in found])
        return
    for finding in found:
        lines = [f"{finding.sentence}.", *findings.lines_of(finding)]
        screen.show(Group(*(Text(line) for line in lines)))


def _own(
    aim: Aim, path: Source | None, keys: dict[str, Any], overrides: Overrides, world: str
) -> Target:
    """The target of an expression of the user's own."""
    if aim.minimise is not None and aim.maximise is not None:
        raise InputError("--minimise and --maximise: one search looks for one of them")
    if aim.stack is None and path is None:
        raise InputError("name a stack (--stack) or a scenario (--scenario)")
    expression = Expression.parse(aim.minimise or aim.maximise or "")
    basis = goals.WEAKNESSES["starve" if aim.against is not None else "bufferbloat"]
    one = goals.Hunt(basis, aim.stack or "", aim.against or "")
    target = Target.of(one, keys, overrides, world, path)
    reference = None
    if expression.has_reference:
        if aim.against is None:
            raise InputError("old(…) needs the reference's stack: --against STACK")
        stack = ("flow.0.stack", aim.against)
        reference = replace(target.source, overrides=(*target.source.overrides, stack))
    return replace(
        target,
        name="worst",
        about=f"{'least' if aim.minimise else 'most'} {expression.text}",
        expression=expression,
        sign=1 if aim.minimise else -1,
        threshold=None,
        reference=reference,
    )


def _write(finding: Finding, how: Execution, *, quiet: bool) -> None:
    """Writes scenario, case and picture next to the journal."""
    folder = Path(finding.journal)
    command = shlex.join(["weir", *sys.argv[1:]])
    file = folder / "found.toml"
    write_text(file, findings.scenario_text(finding).rstrip("\n"))
    output.note(f"Scenario: {file}", quiet=quiet)
    reference = finding.target.reference
    if reference is not None and finding.target.crosses_worlds:
        there = folder / "found-there.toml"
        write_text(there, findings.scenario_text(finding, reference).rstrip("\n"))
        output.note(
            f"The same in the guest: weir run {there} --world kernel --virtual", quiet=quiet
        )
    else:  # a suite runs all stacks in one world
        case = folder / "conform.toml"
        write_text(case, findings.conform_text(finding, command).rstrip("\n"))
        output.note(f"Case: weir conform {case}", quiet=quiet)
    if quiet or finding.value.mean is None:
        return
    try:
        picture = _picture(finding, how, file)
    except InputError as missing:
        output.note(f"no picture: {missing}", quiet=quiet)
    else:
        output.note(f"Picture: {picture}", quiet=quiet)


def _picture(finding: Finding, how: Execution, file: Path) -> Path:
    """Runs the scenario once more with samples, and draws its decisive seconds."""
    from weir.search import pictures  # drawing libraries load slowly

    duration = finding.target.source.at(finding.keys).fields["measure"]["duration"]
    seconds = spaces.seconds(str(duration))
    sampled = (("measure.sample_interval", f"{max(1, round(1e3 * seconds / _SAMPLES))}ms"),)
    source = read(file, sampled).in_world(finding.target.source.world)
    plan = scenario_plan(source, {}, repeat=1, seed=1)
    inner = replace(how, out=Path(finding.journal), resume=False, show_progress=False)
    results = plans.run_plan(plan, plans.Reporting.NONE, **vars(inner))
    names = results.flows.select("flow", pl.col("name").cast(pl.String))
    samples = results.samples.join(names, on="flow")
    at = findings.decisive(_curves(samples))
    width = _MOMENT_SHARE * seconds
    figure = pictures.moment(samples, width if at is None else at, width)
    (picture,) = figure.save(Path(finding.journal), ["svg"])
    return picture


def _curves(samples: pl.DataFrame) -> dict[str, Sequence[tuple[float, float]]]:
    """The goodput of each flow over time, in fortieths of the run."""
    width = float(samples["t_s"].max() or 1.0) / 40  # type: ignore[arg-type]
    slices = (pl.col("t_s") / width).floor() * width
    means = samples.group_by("name", slices.alias("at"), maintain_order=True).agg(
        pl.col("goodput_mbps").mean()
    )
    found: dict[str, list[tuple[float, float]]] = {}
    for name, at, value in means.sort("at").iter_rows():
        found.setdefault(str(name), []).append((at, value or 0.0))
    return dict(found)
