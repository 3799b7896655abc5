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
from weir.base.grid import Grid, counted
from weir.base.plain import plain_lines
from weir.cli import output, screen
from weir.conform.cases.scripts import WORLDS
from weir.guest import packetdrill
from weir.guest.packetdrill import ScriptResult


def run(
    files: Sequence[Path],
    stacks: Sequence[str],
    world: str,
    *,
    keep_going: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Runs the scripts, prints the results, and exits with 1 if one is not good.

    With `keep_going` scripts that are not understood are counted.

    Raises:
        InputError: there are several stacks, or the world runs no scripts.
    """
    if len(stacks) > 1:
        raise InputError(f"--stack {stacks[1]}: scripts run with one stack at a time")
    if world not in WORLDS:
        raise InputError(f"--world {world}: scripts run in the worlds sim and kernel")
    execute = packetdrill.run_understood if keep_going else packetdrill.run_scripts
    results = execute(files, next(iter(stacks), None), WORLDS[world])
    if as_json:
        output.print_json("conform", [_row(result) for result in results])
    else:
        shown = [result for result in results if not (quiet and result.is_good)]
        lines = [Text(plain_lines(_line(result))) for result in shown]
        tables = [_folders(files, results).rich()] if keep_going else []
        screen.show(Group(*lines, *tables, Text(_summary(results))))
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
    if result.verdict in ("fail", "refused"):
        return f"{result.verdict} {result.path}:{result.line}: {result.message}"
    return f"{result.verdict} {result.path}{cases}{f': {result.reason}' if result.reason else ''}"


def _folders(roots: Sequence[Path], results: Sequence[ScriptResult]) -> Grid:
    """Returns how many scripts of each folder run and hold, and what is missing most often."""
    by_folder: dict[str, list[ScriptResult]] = {}
    for result in results:
        by_folder.setdefault(_folder(roots, result.path), []).append(result)
    rows = [_counts(folder, found) for folder, found in by_folder.items()]
    if len(rows) > 1:
        rows.append(_counts("all", results))
    headers = ("folder", "scripts", "run", "hold", "not understood")
    return Grid("Packet scripts by folder", headers, rows, 1, 1)


def _folder(roots: Sequence[Path], path: Path) -> str:
    """Returns the first folder of a script below the given one."""
    root = next((root for root in roots if path.is_relative_to(root)), path.parent)
    parts = path.relative_to(root).parts
    return str(root / parts[0]) if len(parts) > 1 else str(root)


def _counts(folder: str, results: Sequence[ScriptResult]) -> tuple[str, ...]:
    ran = [result for result in results if result.runs]
    holds = [result for result in ran if result.verdict != "fail"]
    messages = (result.message for result in results if result.verdict == "refused")
    reasons = Counter(message.split(";")[0].split(" is not supported")[0] for message in messages)
    most = ", ".join(f"{text[:50]} ({n})" for text, n in reasons.most_common(_REASONS))
    return folder, str(len(results)), str(len(ran)), str(len(holds)), most


def _summary(results: Sequence[ScriptResult]) -> str:
    counts = Counter(result.verdict for result in results)
    return f"{counted(len(results), 'script')}: " + ", ".join(
        f"{n} {name}" for name, n in counts.items()
    )


_REASONS = 3
"""How many reasons a row of the table shows."""
