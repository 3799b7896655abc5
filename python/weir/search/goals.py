"""The named goals of `weir search`, which `goals.toml` describes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from weir.base.errors import InputError, unknown
from weir.scenario.source import Source
from weir.search.expressions import Expression
from weir.search.space import Bounds, option

IN_TURN = ("starve", "stall", "harm", "bufferbloat", "unfair")
"""The goals of a search that names none."""


@dataclass(frozen=True)
class Weakness:
    """One goal: `sign` -1 looks for the most, 1 for the least of an expression."""

    name: str
    about: str
    scenario: Source
    space: Mapping[str, str]
    expression: Expression
    sign: int
    threshold: float | None
    """From which value on it is found."""
    against: str = ""
    """The second stack, or the reference's, unless another is given; empty for the same one."""
    old: str = ""
    """The stack of the reference run; empty if there is none."""
    old_world: str = ""
    keeps_time: bool = False
    """Whether the scenario's time is part of the goal."""
    stack: str = ""

    def of(self, stack: str, against: str) -> Weakness:
        """The goal for a stack, with the names of both in its texts."""

        def filled(text: str) -> str:
            return text.replace("{stack}", stack).replace("{against}", against)

        scenario = replace(self.scenario, text=filled(self.scenario.text))
        about, old = filled(self.about), filled(self.old)
        return replace(self, about=about, scenario=scenario, old=old, stack=stack, against=against)


@dataclass(frozen=True)
class Aim:
    """What a search is about."""

    stack: Annotated[str | None, option("Stack to find the weakness of.", metavar="STACK")] = None
    against: Annotated[
        str | None,
        option(
            "Stack of the second flow, or of the reference.",
            metavar="STACK",
            default_text="the same one",
        ),
    ] = None
    scenario: Annotated[
        Path | None, option("Scenario in place of the goal's, with {space}.", metavar="FILE")
    ] = None
    space: Bounds = None
    minimise: Annotated[
        str | None, option("Expression to minimise in place of a goal.", metavar="EXPRESSION")
    ] = None
    maximise: Annotated[
        str | None, option("Expression to maximise in place of a goal.", metavar="EXPRESSION")
    ] = None
    until: Annotated[
        float | None,
        option(
            "Value of the expression at which the search ends: from there on it counts as found.",
            metavar="VALUE",
            default_text="the goal's",
        ),
    ] = None
    keep_time: Annotated[bool, option("Shrink neither duration nor warm-up of the scenario.")] = (
        False
    )


_OPTIONAL = ("against", "old", "old_world", "keeps_time")


def _read() -> dict[str, Weakness]:
    text = (files(__package__) / "goals.toml").read_text(encoding="utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    return {
        name: Weakness(
            name,
            goal["about"],
            Source(data["scenario"][goal["scenario"]], name),
            {key: text for part in goal["space"] for key, text in data["space"][part].items()},
            Expression.parse(goal.get("minimise") or goal["maximise"]),
            1 if "minimise" in goal else -1,
            goal["from"],
            **{key: goal[key] for key in _OPTIONAL if key in goal},
        )
        for name, goal in data["goal"].items()
    }


WEAKNESSES: Mapping[str, Weakness] = _read()


def hunts(words: Sequence[str], stack: str | None, against: str | None) -> list[Weakness]:
    """The goals that the words of a command line stand for.

    Raises:
        InputError: there is no such goal, it needs other words, or no stack is named.
    """
    name, *rest = words or [""]
    if name == "regress":
        if len(rest) != 2:
            raise InputError("regress takes two stacks: weir search regress OLD NEW")
        return [WEAKNESSES[name].of(rest[1], rest[0])]
    if stack is None:
        raise InputError("name a stack, as in weir search starve --stack copa")
    if name == "disagree":
        if sorted(rest) not in ([], ["kernel", "sim"]):
            raise InputError(f"disagree {' '.join(rest)}: only 'sim kernel' can be compared")
        return [WEAKNESSES[name].of(stack, stack)]
    for one in words:
        if one not in WEAKNESSES:
            raise InputError(unknown("goal", one, WEAKNESSES))
    chosen = [WEAKNESSES[one] for one in words or IN_TURN]
    return [one.of(stack, against or one.against or stack) for one in chosen]


def own(aim: Aim) -> Weakness:
    """The goal of an expression of the user's own, over the networks of a named goal.

    Raises:
        InputError: it is not valid, or a stack is missing.
    """
    if aim.minimise is not None and aim.maximise is not None:
        raise InputError("--minimise and --maximise: one search looks for one of them")
    if aim.stack is None and aim.scenario is None:
        raise InputError("name a stack (--stack) or a scenario (--scenario)")
    expression = Expression.parse(aim.minimise or aim.maximise or "")
    if expression.has_reference and not aim.against:
        raise InputError("old(…) needs the reference's stack: --against STACK")
    basis = WEAKNESSES["starve" if aim.against is not None else "bufferbloat"]
    return replace(
        basis.of(aim.stack or "", aim.against or ""),
        name="worst",
        about=f"{'least' if aim.minimise else 'most'} {expression.text}",
        expression=expression,
        sign=1 if aim.minimise else -1,
        threshold=None,
        old=(aim.against or "") if expression.has_reference else "",
    )
