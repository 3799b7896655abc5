"""Cases that are packet scripts, of the folder `packets`: each is described by the script's head.

A script that names its stack with `--stack` is about that controller with these parameters, and
judges it by default. The others are about all controllers whose window moves as RFC 5681's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from weir.conform.cases import stacks
from weir.conform.cases.bounds import Envelope
from weir.conform.cases.model import Case, Check, Picture
from weir.guest import packetdrill
from weir.guest.packetdrill import ScriptResult
from weir.guest.script_files import SUFFIX, ScriptFile, read
from weir.scenario.source import KERNEL, SIM, VIRTUAL

Key = tuple[str, str]
"""A script by its name, and a stack."""

WORLDS: Mapping[str, packetdrill.World] = {
    SIM: "sim",
    KERNEL: "kernel",
    VIRTUAL: "kernel-virtual",
}
"""The worlds that run scripts."""

CHECK = "the script holds"

_ACK_CLOCKED = ("reno", "cubic")

_NAMED_STACK = re.compile(r"^--stack=", re.MULTILINE)


def cases(suite: str, patterns: Sequence[str]) -> list[Case]:
    """The cases of the scripts that match, as in `prr/*`, in the order of their ids."""
    found = [_case(suite, name) for pattern in patterns for name in _matching(pattern)]
    return sorted(found, key=lambda case: case.id)


def why_not_applicable(case: Case, stack: str, world: str) -> str:
    """Why a script does not judge a stack; empty if it does."""
    if world not in WORLDS:
        return f"packet scripts run in the worlds {', '.join(WORLDS)}"
    wanted, own = stacks.parts(_script(case.script).script.stack), stacks.parts(stack)
    if wanted is None or own is None or stacks.controller(stack) is None:
        return "packet scripts judge controllers of Weir and of Linux"
    if wanted[0] != own[0]:
        return f"a script of recovery scheme {wanted[0]}"
    if not _names_stack(case.script) or wanted[1] == own[1]:
        return ""
    return f"a script of {wanted[1]}"


def run(keys: Sequence[Key], world: str) -> dict[Key, ScriptResult]:
    """The results of scripts with stacks.

    Raises:
        KernelError: there is no guest kernel, or the guest failed.
    """
    found: dict[Key, ScriptResult] = {}
    for stack in dict.fromkeys(stack for _, stack in keys):
        names = [name for name, own in keys if own == stack]
        results = packetdrill.run_files([_script(name) for name in names], stack, WORLDS[world])
        found |= zip(((name, stack) for name in names), results, strict=True)
    return found


def _matching(pattern: str) -> list[str]:
    root = _root()
    names = [str(path.relative_to(root).with_suffix("")) for path in root.glob(pattern + SUFFIX)]
    if not names:
        raise ValueError(f"{pattern}: there is no such script")
    return names


@cache
def _script(name: str) -> ScriptFile:
    (script,) = read([_root() / f"{name}{SUFFIX}"])
    return script


@cache
def _names_stack(name: str) -> bool:
    return bool(_NAMED_STACK.search(_script(name).path.read_text(encoding="utf-8")))


def _root() -> Path:
    with as_file(files("weir.conform") / "packets") as root:
        return root


def _case(suite: str, name: str) -> Case:
    script = _script(name).script
    exact = stacks.controller(script.stack)
    return Case(
        suite=suite,
        id=f"{script.cases[0]}-{Path(name).name}",
        title=script.title.removesuffix("."),
        source=script.source,
        procedure=f"Packet script {name}{SUFFIX}, which weir conform runs by its path too.",
        controllers=[exact] if _names_stack(name) and exact else _ACK_CLOCKED,
        needs=[],
        seeds=1,
        variants={},
        checks=[_CHECK],
        picture=Picture((), ""),
        trigger=None,
        script=name,
        stacks=[script.stack.removeprefix("rack/")] if _names_stack(name) else [],
    )


_CHECK = Check(
    name=CHECK,
    measure="script",
    arguments={},
    envelope=Envelope(1, 1),
    unit="",
    join="worst",
    of="",
    against=(),
    is_ours=False,
    is_yes_or_no=True,
    origin="times within 4 ms or 12.5 % of the time since the event before, as in packetdrill",
    needs=(),
    known={},
)
