"""Packet scripts of `weir conform`: how they run, and their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Group
from rich.text import Text

from weir.base.errors import InputError
from weir.base.plain import plain_lines
from weir.cli import output
from weir.conform.cases.scripts import WORLDS
from weir.guest import packetdrill
from weir.guest.packetdrill import ScriptResult


def run(
    files: Sequence[Path], stacks: Sequence[str], world: str, *, as_json: bool, quiet: bool
) -> None:
    """Runs the scripts, prints the results, and exits with 1 if one is not good.

    Raises:
        InputError: there are several stacks, or the world runs no scripts.
    """
    if len(stacks) > 1:
        raise InputError(f"--stack {stacks[1]}: scripts run with one stack at a time")
    if world not in WORLDS:
        raise InputError(f"--world {world}: scripts run in the worlds sim and kernel")
    results = packetdrill.run_scripts(files, next(iter(stacks), None), WORLDS[world])
    if as_json:
        output.print_json("conform", [_row(result) for result in results])
    else:
        shown = [result for result in results if not (quiet and result.is_good)]
        lines = [Text(plain_lines(_line(result))) for result in shown]
        output.show(Group(*lines, Text(_summary(results))))
    if not all(result.is_good for result in results):
        raise typer.Exit(1)


def _row(result: ScriptResult) -> dict[str, Any]:
    return {
        "file": str(result.path),
        "cases": list(result.cases),
        "source": result.source,
        "title": result.title,
        "world": result.world,
        "verdict": result.verdict,
        "line": result.line,
        "message": result.message,
        "reason": result.reason,
    }


def _line(result: ScriptResult) -> str:
    """As packetdrill reports: file, line, what differs, both packets."""
    cases = f" ({' '.join(result.cases)})" if result.cases else ""
    if result.verdict == "fail":
        return f"fail {result.path}:{result.line}: {result.message}"
    return f"{result.verdict} {result.path}{cases}{f': {result.reason}' if result.reason else ''}"


def _summary(results: Sequence[ScriptResult]) -> str:
    counts = Counter(result.verdict for result in results)
    return f"{len(results)} scripts: " + ", ".join(f"{n} {name}" for name, n in counts.items())
