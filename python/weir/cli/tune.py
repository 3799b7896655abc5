"""`weir tune`: the parameters that serve best."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from weir.base.grid import Grid
from weir.base.options import chosen
from weir.cli import complete, options, output, plans, screen, table
from weir.cli.help import Verb
from weir.comparison.contrasts import RELEVANT_SHARE, Relevant
from weir.running.execution import Execution
from weir.scenario.plans import Comparison
from weir.scenario.source import parse_assignments, parse_sweep, read
from weir.search import space as spaces
from weir.search.loop import shown
from weir.search.problem import Problem
from weir.search.tune import Tuned, TuneOptions, rows
from weir.search.tune import tune as tuned_by
from weir.statistics.intervals import Estimate

_HELP = (
    "A range in braces stands wherever a value does: [bold]{0.5..0.9}[/bold], "
    "[bold]{1..64}[/bold], [bold]{1ms..1s}[/bold], [bold]{droptail, codel}[/bold].\n\n"
    "Candidates race with paired seeds. The answer is judged on fresh seeds, and on networks that "
    "the search did not see. See docs/search/README.md."
)

_EXAMPLES = """[bold]Examples[/bold]

  weir tune 'go-back-n({1..64})/none' --rate 10mbit --rtt 40ms

  weir tune 'aimd(1,{0.5..0.95})' --queue 0.25bdp --maximise utilisation

  weir tune cubic --sweep topology.rtt=10ms,40ms,160ms --maximise goodput \\
    --set 'topology.queue={ kind = "codel", target = "{1ms..50ms}" }' \\
    --subject-to 'queue_delay_ms_p95 < 20'

  weir tune 'copa(delta={0.05..1 log})' --maximise goodput \\
    --minimise queue_delay_ms_mean"""


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(tune)


@table.with_options_of(
    TuneOptions, Comparison, Execution, without=["repeat", "pcap", "client", "server"]
)
def tune(
    stack: Annotated[
        str | None,
        typer.Argument(
            metavar="STACK",
            help="Stack, with ranges in place of parameters.",
            autocompletion=complete.stacks,
        ),
    ] = None,
    *,
    relevant: Relevant = RELEVANT_SHARE,
    sets: options.Sets = None,
    sweep: options.Sweep = None,
    virtual: options.Virtual = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Searches, and prints the answer."""
    share = plans.relevant_share(relevant)
    how = Execution(**plans.execution(given, quiet=quiet))
    world = plans.world_of(given.pop("world"), virtual=virtual)
    tried = TuneOptions(**chosen(TuneOptions, given))
    keys = spaces.read(tried.space) if tried.space is not None else {}
    overrides = parse_assignments(sets or [], "--set")
    if tried.scenario is None:
        one = stack or "cubic"
        source = Comparison([one], sets=overrides, **chosen(Comparison, given)).source(one)
    else:
        own = () if stack is None else (("flow.0.stack", stack),)
        source = read(tried.scenario, (*own, *overrides))
    problem = Problem.of(source.in_world(world), keys, parse_sweep(sweep or []), tried.default)
    found = tuned_by(problem, tried, how, share, lambda text: output.note(text, quiet=quiet))
    for warning in found.warnings:
        output.note(f"warning: {warning}", quiet=quiet)
    if json:
        more = {"verdict": found.verdict, "runs": found.runs, "candidates": found.candidates}
        more |= {"within": {k: list(ends) for k, ends in found.plateau.items()}}
        more |= {"warnings": list(found.warnings), "hypervolume": found.hypervolume}
        output.print_json("tune", list(rows(found)), **more)
    else:
        lines = map(Text, _sentences(found, share))
        screen.show(Group(*lines, _grid(found).rich()))
    output.note(f"Search: {found.journal}", quiet=quiet)


def _sentences(found: Tuned, share: float) -> list[str]:
    """The answer in words."""
    lines = [f"{found.verdict}."]
    if found.plateau:
        ends = ", ".join(f"{key}: {low} to {high}" for key, (low, high) in found.plateau.items())
        lines.append(f"Within {share * 100:g} % of the best: {ends}.")
    lines += [f"{found.window}."] if found.window else []
    networks = f"{found.networks} network{'s' if found.networks > 1 else ''}"
    others = f"held out: {'; '.join(found.held_out)}" if found.held_out else "none held out"
    lines.append(f"{found.runs} runs, {found.candidates} candidates, {networks}, {others}.")
    return lines


def _grid(found: Tuned) -> Grid:
    lines, before = [], ""
    for one in found.finalists:
        name = f"{shown(one.keys)}{' (default)' if one.is_default else ''}"
        difference = one.difference.estimate if one.difference else None
        p_value = "" if one.adjusted_p is None else f"{one.adjusted_p:.2g}"
        other = one.held_out.estimate if one.held_out else None
        note = "" if one.keeps_bounds else "breaks a bound"
        values = (_interval(each) for each in (one.value, difference, other))
        first = "" if name == before else name
        lines.append((first, one.goal.expression.text, *values, p_value, note))
        before = name
    unit = "" if found.networks == 1 else ", over the default's mean of each network"
    title = f"On fresh seeds: means and differences to the default with 95 % intervals{unit}"
    headers = ("setting", "goal", "value", "difference", "held out", "p (Holm)", "")
    return Grid(title, headers, lines, names=2, notes=1)


def _interval(one: Estimate | None) -> str:
    if one is None or one.mean is None:
        return "–"
    ends = "" if one.lo is None or one.hi is None else f" ({one.lo:.4g} to {one.hi:.4g})"
    return f"{one.mean:.4g}{ends}"
