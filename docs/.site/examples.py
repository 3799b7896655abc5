"""Links below the examples of the documentation, which open them in the laboratory's page."""

from __future__ import annotations

import re
import shlex
from html import escape
from typing import Any

try:
    import typer.main

    from weir import ScenarioError
    from weir.base.errors import WeirError
    from weir.base.options import chosen
    from weir.cli import app, plans
    from weir.laboratory import replay
    from weir.report.animation import Excerpt, span_of
    from weir.scenario.plans import Comparison, scenario_plan
    from weir.scenario.source import HOSTS, SIM, Source, parse_assignments, parse_sweep, read
    from weir.scenario.tc import keys
except ImportError:  # the site is built without the native module too
    IS_BUILT = False
else:
    IS_BUILT = True

MOST_LINKS = 8
"""Of a block: a sweep may have hundreds of cases."""
_BLOCK = re.compile(r"^```(?P<kind>toml|console)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def linked(markdown: str, page: str) -> str:
    """A page of the documentation, with a link to `page` for each case of an example.

    Blocks without a scenario get none, nor do those whose scenario the page cannot run: of other
    worlds, with stacks of other projects, with controllers in Python.
    """

    def add(block: re.Match[str]) -> str:
        cases = _of_file(block["text"]) if block["kind"] == "toml" else _of_commands(block["text"])
        links = [
            f'<a href="{page}#{escape(fragment)}" target="_blank">{escape(label)}</a>'
            for label, fragment in dict.fromkeys(cases)
        ]
        if not links:
            return block[0]
        return f'{block[0]}\n\n<p class="try-it">Try it: {" · ".join(links[:MOST_LINKS])}</p>\n'

    return _BLOCK.sub(add, markdown)


def _of_file(text: str) -> list[tuple[str, str]]:
    """The scenario of a block, if it is one."""
    try:
        whole = Source(text, "example").at({})
        return [(whole.name, replay.fragment(whole, "example", whole.seed))]
    except (ScenarioError, WeirError):
        return []


def _of_commands(text: str) -> list[tuple[str, str]]:
    """The cases of the commands in a block, each with its name."""
    lines = text.replace("\\\n", " ").splitlines()
    return [case for line in lines if line.startswith("$ weir ") for case in _of_command(line[2:])]


def _of_command(line: str) -> list[tuple[str, str]]:
    _, verb, *words = shlex.split(line, comments=True)
    if verb not in ("run", "compare", "ui"):
        return []
    command: Any = typer.main.get_command(app)
    own = command.get_command(command.make_context("weir", [], resilient_parsing=True), verb)
    given = own.make_context(verb, words).params
    try:
        if verb == "ui":
            return _saved(given)
        plan = _compared(given) if verb == "compare" else _run(given)
        return [
            (case.label, replay.fragment(case.scenario, "example", plan.seed))
            for case in plan.cases
            if case.world == SIM
        ]
    except (ScenarioError, WeirError):
        return []


def _compared(given: dict[str, Any]) -> Any:
    found = {
        **given,
        "sets": parse_assignments(given["sets"] or [], "--set"),
        "sweep": parse_sweep(given["sweep"] or []),
        "world": plans.world_of(given["world"], virtual=given["virtual"], router=given["router"]),
    }
    return Comparison(given["stacks"], **chosen(Comparison, found)).plan()


def _saved(given: dict[str, Any]) -> list[tuple[str, str]]:
    if given["save"] is None:
        return []
    source = read(given["what"], parse_assignments(given["sets"] or [], "--set"))
    whole = source.at({})
    if whole.fields["topology"]["kind"] == "radio":  # of which the page has no picture
        return []
    wish = Excerpt(source, given["seed"], given["start"], given["span"])
    seed = whole.seed if wish.seed is None else wish.seed
    start, _ = span_of(wish, whole)
    fragment = replay.fragment(whole, "example", seed, start)
    return [(f"{whole.name} from {start:g} s", fragment)]


def _run(given: dict[str, Any]) -> Any:
    overrides = parse_assignments(given["sets"] or [], "--set")
    source = read(given["file"], (*keys(given["tc"], given["reverse_tc"]), *overrides))
    world = plans.world_of(given["world"], virtual=given["virtual"], router=given["router"])
    source = source.in_world(HOSTS if given["hosts"] else world)
    return scenario_plan(source, parse_sweep(given["sweep"] or []), seed=given["seed"])
