"""packetdrill's scripts: segments in, segments out, in virtual time.

>>> found = run_scripts([Path("tests/packetdrill/slow-start")])  # doctest: +SKIP
>>> [result.verdict for result in found]  # doctest: +SKIP
['pass', 'pass', 'pass', …, 'pass']
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from weir.base.errors import InputError
from weir.guest import script_files, scripts
from weir.guest.script_files import Departure, ScriptFile, read

SIMULATOR = "sim"
"""The world of Weir's own transport."""

World = Literal["sim", "kernel", "kernel-virtual"]
"""Whose TCP runs a script."""

Verdict = Literal["pass", "fail", "skip", "known", "unexpected", "refused"]
"""`known`: fails, as the script's head says. `unexpected`: passes, although the head says that it
fails. `refused`: uses what is not understood, or what the world does not have."""


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """What became of a script."""

    path: Path
    cases: tuple[str, ...]
    """The ids of its cases."""
    source: str
    title: str
    world: str
    """`sim`, or the kernel with its version."""
    verdict: Verdict
    line: int | None
    """Of the event where the stack departs from the script."""
    message: str
    """What differs there; without a difference empty."""
    reason: str
    """Why the world is an exception, from the script's head."""
    is_refused: bool = False
    """Whether the world does not have what the script uses."""

    @property
    def is_good(self) -> bool:
        """Whether the verdict is no failure."""
        return self.verdict in {"pass", "skip", "known", "refused"}

    @property
    def runs(self) -> bool:
        """Whether the world has run the script."""
        return self.verdict not in {"skip", "refused"}


def run_scripts(
    paths: Sequence[Path], stack: str | None = None, world: World = "sim"
) -> list[ScriptResult]:
    """Runs scripts.

    Args:
        paths: Scripts, or folders of them.
        stack: Recovery scheme and controller, in place of those of the scripts.
        world: Weir's transport (`sim`), this machine's kernel (`kernel`), which requires root, or a
            guest's in virtual time (`kernel-virtual`).

    Raises:
        InputError: a script or the stack is not valid.
        KernelError: there is no guest kernel, or the guest failed.
    """
    return run_files(read(paths), stack, world)


def run_understood(
    paths: Sequence[Path], stack: str | None = None, world: World = "sim"
) -> list[ScriptResult]:
    """Runs scripts as `run_scripts` does; those that are not understood are `refused`.

    Raises:
        InputError: a file cannot be read, or the stack is not valid.
        KernelError: there is no guest kernel, or the guest failed.
    """
    files, refused = script_files.read_understood(paths)
    results = [
        replace(result, verdict="refused") if result.is_refused else result
        for result in run_files(files, stack, world)
    ]
    name = results[0].world if results else SIMULATOR
    results += [_refused(one, name) for one in refused]
    return sorted(results, key=lambda result: result.path)


def _refused(script: script_files.Refused, world: str) -> ScriptResult:
    return ScriptResult(
        path=script.path,
        cases=(),
        source="",
        title="",
        world=world,
        verdict="refused",
        line=script.line,
        message=script.message,
        reason="",
        is_refused=True,
    )


def run_files(
    files: Sequence[ScriptFile], stack: str | None = None, world: World = "sim"
) -> list[ScriptResult]:
    """Runs scripts that were read, as `run_scripts` does."""
    try:
        if world == "kernel-virtual":
            name, run = scripts.prepared(stack)
        elif world == "kernel":
            name, run = f"kernel-{os.uname().release}", partial(_each, "run_on_kernel", stack)
        else:
            name, run = SIMULATOR, partial(_each, "run", stack)
        able = [file for file in files if not _is_skipped(file, name)]
        departures = dict(zip((file.path for file in able), run(able), strict=True))
    except ValueError as error:
        raise InputError(str(error)) from None
    return [judge(file, name, departures.get(file.path)) for file in files]


def _each(method: str, stack: str | None, files: Sequence[ScriptFile]) -> list[Departure | None]:
    return [getattr(file.script, method)(stack) for file in files]


def _is_skipped(file: ScriptFile, world: str) -> bool:
    exception = file.script.exception(world)
    return exception is not None and exception[0] == "skip"


def judge(file: ScriptFile, world: str, departure: Departure | None) -> ScriptResult:
    """Returns the result of a run in `world` that departed there from the script, or nowhere."""
    kind, reason = file.script.exception(world) or (None, "")
    verdict: Verdict = "pass" if departure is None else "fail"
    if kind == "skip":
        verdict = "skip"
    elif kind == "known":
        verdict = "unexpected" if departure is None else "known"
    return ScriptResult(
        path=file.path,
        cases=tuple(file.script.cases),
        source=file.script.source,
        title=file.script.title,
        world=world,
        verdict=verdict,
        line=departure[1] if departure else None,
        message=departure[2] if departure else "",
        reason=reason,
        is_refused=verdict == "fail" and departure is not None and departure[0] == "refused",
    )
