"""Options that several verbs share, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weir.api import RESULTS, How
from weir.cli import complete
from weir.scenario import worlds

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout instead of tables.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress bar, no remarks on stderr.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List every run and start none.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with an interrupted command, given once more.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", min=1, help="Runs at a time.", show_default="one per core; in real time one"
    ),
]
Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="DIR", help="Where result directories are made.")
]
OutDefault = Path(RESULTS)
World = Annotated[
    str,
    typer.Option(
        "--world",
        metavar="|".join(worlds()),
        help="The simulator, or real transfers over loopback in real time.",
        autocompletion=complete.worlds,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Set any key of the scenario; may be repeated."
    ),
]
SweepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        metavar="KEY=A,B,C",
        help="Run once per value of a key; several sweeps make their cross product.",
    ),
]


def how(out: Path, jobs: int | None, *, resume: bool = False, quiet: bool = False) -> How:
    """The execution settings that the options describe."""
    return How(out=out, jobs=jobs, resume=resume, show_progress=not quiet)
