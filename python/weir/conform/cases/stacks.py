"""Stacks under test: their controllers, and whether a case concerns them."""

from __future__ import annotations

from collections.abc import Sequence

from weir import _native
from weir.conform.cases.model import Case
from weir.contenders import catalogue

CONTENDER = "contender"
"""Among the hosts of a case: any program of another project that writes a qlog."""


def controller(stack: str) -> str | None:
    """The controller's name without parameters: `cubic` of `sack/cubic(hystart=off)`.

    In stacks of other projects it is the algorithm: `cubic` of `noq/weir-cubic`, `reno` of
    `quinn/newreno`. Of a contender it is parameter `cc`, by default that of its definition. None
    for a class in Python, whose name says nothing about its algorithm.
    """
    program = catalogue.of(stack)
    if program is not None and "cc" in program.values:
        stack = f"{host(stack)}(cc={program.values['cc']})"
    return _native.stack_parts(stack)[3]


def parts(stack: str) -> tuple[str, str] | None:
    """The name of the recovery scheme, and the controller with its parameters.

    None for stacks of other projects.
    """
    project, scheme, own, _ = _native.stack_parts(stack)
    return (scheme.partition("(")[0], own) if project == "weir" else None


def host(stack: str) -> str:
    """What a stack runs in: `quinn` of `quinn/cubic`, `contender:quiche`; `weir` for our own."""
    return _native.stack_parts(stack)[0]


def concerns(case: Case, stack: str, *, is_named: bool) -> str:
    """Why a case does not concern a stack; empty if it does.

    A class in Python is judged by every suite that the user has named, and by those of no
    particular algorithm.
    """
    if case.hosts and not _is_in(stack, case.hosts):
        return f"a case of stacks in {', '.join(case.hosts)}"
    name = controller(stack)
    if not case.controllers or name in case.controllers or (name is None and is_named):
        return ""
    what = f"a case of {', '.join(case.controllers)}"
    return what if name is not None else f"{what}; name the suite to run it"


def _is_in(stack: str, hosts: Sequence[str]) -> bool:
    program = catalogue.of(stack)
    has_qlog = program is not None and program.definition.qlog is not None
    return host(stack) in hosts or (has_qlog and CONTENDER in hosts)
