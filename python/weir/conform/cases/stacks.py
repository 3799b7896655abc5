"""Stacks under test: their controllers, and whether a case concerns them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache

from weir import _native
from weir.base.errors import InputError
from weir.conform.cases.model import Case
from weir.scenario.source import Source, split_list

_PARTS = re.compile(r"(?P<scheme>[a-z0-9-]+)(\([^)]*\))?/(?P<controller>.+)")

_CONTENDER = re.compile(r"contender:[^(]+\((.*,)?cc=(?P<controller>[^,)]+).*\)")

_PROBE = """
name = "conform"
[topology]
kind = "dumbbell"
[[flow]]
stack = "reno"
"""


def named(given: Sequence[str], world: str) -> list[str]:
    """The stacks of `--stack A,B --stack C`, each once, each checked.

    Raises:
        InputError, ScenarioError: one is not a stack of this world; the message says why.
    """
    Source(_PROBE, "conform").in_world(world)
    stacks = [stack for text in given for stack in split_list(text)]
    for stack in stacks:
        if not stack:
            raise InputError(f"--stack {','.join(given)}: a name is empty; write it as A,B,C")
        if stacks.count(stack) > 1:
            raise InputError(f"--stack: {stack} is given twice")
        probe = Source(_PROBE, "--stack", (("flow.0.stack", stack),))
        probe.in_world(world).at({})
    return stacks


def controller(stack: str) -> str | None:
    """The controller's name without parameters: `cubic` of `sack/cubic(hystart=off)`.

    In stacks of other projects it is the algorithm: `cubic` of `noq/weir-cubic`, `reno` of
    `quinn/newreno`. None for a class in Python, whose name says nothing about its algorithm.
    """
    if ".py:" in stack:
        return None
    if contender := _CONTENDER.fullmatch(stack):
        stack = contender["controller"]
    match = _PARTS.fullmatch(stack)
    text = match["controller"] if match else stack
    name = text.partition("(")[0].rpartition("/")[2].removeprefix("weir-")
    return "reno" if name == "newreno" else name


def parts(stack: str) -> tuple[str, str] | None:
    """The name of the recovery scheme, and the controller with its parameters.

    None for stacks of other projects.
    """
    match = _PARTS.fullmatch(stack)
    if match and match["scheme"] in _schemes():
        return match["scheme"], match["controller"]
    is_foreign = match is not None and controller(stack) is not None
    return None if is_foreign else ("rack", stack)


def host(stack: str) -> str:
    """What a stack runs in: `quinn` of `quinn/cubic`, `contender:quiche`; `weir` for our own."""
    name = stack.partition("(")[0]
    if name.startswith("contender:"):
        return name
    match = _PARTS.fullmatch(stack)
    return match["scheme"] if match and match["scheme"] not in _schemes() else "weir"


@cache
def _schemes() -> frozenset[str]:
    return frozenset(item["name"] for item in json.loads(_native.catalogue())["recoveries"])


def concerns(case: Case, stack: str, *, is_named: bool) -> str:
    """Why a case does not concern a stack; empty if it does.

    A class in Python is judged by every suite that the user has named, and by those of no
    particular algorithm.
    """
    if case.hosts and host(stack) not in case.hosts:
        return f"a case of stacks in {', '.join(case.hosts)}"
    name = controller(stack)
    if not case.controllers or name in case.controllers or (name is None and is_named):
        return ""
    what = f"a case of {', '.join(case.controllers)}"
    return what if name is not None else f"{what}; name the suite to run it"
