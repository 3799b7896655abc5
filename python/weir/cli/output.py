"""What the verbs print: tables or JSON on stdout, everything else on stderr."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from weir.errors import RunError
from weir.results import Results
from weir.runner import failure_text
from weir.sweep import Plan
from weir.tables import Grid

SCHEMA = 1
"""Version of the JSON that every verb prints."""

_PLAIN_WIDTH = 160


def print_json(command: str, rows: Sequence[Mapping[str, Any]], **more: Any) -> None:
    """The one object of `--json`. It depends on the command only, never on time or machine."""
    document = {"schema": SCHEMA, "command": command, **more, "rows": list(rows)}
    print(json.dumps(document, ensure_ascii=False))


def show(renderable: RenderableType) -> None:
    """A table on stdout, wide enough for a file or a pipe too."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH
    console.print(renderable)


def remark(text: str, *, quiet: bool) -> None:
    """A line for the person at the terminal."""
    if not quiet:
        Console(stderr=True, soft_wrap=True, highlight=False).print(Text(text))


def list_plan(command: str, plan: Plan, *, as_json: bool) -> None:
    """Every run of a plan, for `--dry-run`."""
    rows = [
        {
            "run": run.index,
            "label": run.case.label,
            "stack": run.case.stack,
            **run.case.point,
            "repeat": run.repeat,
            "seed": run.seed,
            "key": run.key,
        }
        for run in plan.runs
    ]
    if as_json:
        print_json(command, rows)
        return
    cells = [
        (str(r.index), r.case.label, r.case.stack, str(r.repeat), str(r.seed)) for r in plan.runs
    ]
    title = f"{plan.name}: {len(cells)} runs"
    show(Grid(title, ("run", "case", "stack", "repeat", "seed"), cells, names=3).rich())


def finish(results: Results, *, quiet: bool) -> None:
    """Draws the report, says where everything is, and fails if any run did."""
    remark(f"Report: {draw(results.path)}", quiet=quiet)
    if results.failures:
        text = failure_text(results.failures, results.manifest["runs"]["planned"])
        raise RunError(f"{text}; the others are in {results.path}")


def draw(directory: Path, formats: Sequence[str] = ()) -> Path:
    """Draws the report of a result directory and returns where it is."""
    from weir.report import write  # the drawing libraries take longer to load than `--help` may

    return write(directory, formats)
