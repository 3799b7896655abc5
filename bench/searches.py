"""Known weaknesses that `weir search` has to find again: `python -m bench.searches` prints a table.

Five cases of `docs/search`, each searched with five seeds, and with networks drawn at random; the
table has medians. Its first columns are runs until the threshold is confirmed, and what is left
after shrinking. For the last three a search goes on until its budget is spent, and random networks
until they are as bad as its worst one, for ten times as many runs at most.
"""

from __future__ import annotations

import json as texts
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from bench import command
from weir.base.errors import InputError, RunError, unknown
from weir.base.grid import Grid
from weir.cli import output, screen

_FOLDER = Path(__file__).parent.parent / "docs" / "search"
_TIMES = 10
"""How many times the runs of a search random networks have."""
_PROGRESS = re.compile(r"^(\d+) runs, (\S+):", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A weakness that is known from literature."""

    arguments: str
    """Of `weir search`, in the folder of the documentation."""
    runs: int
    """Budget of a search that goes on."""
    least: bool = True
    """Whether less is worse."""


_ATTACK = 'max(share("first") / 0.2, share("pulses") / 0.3) * links.utilisation'

CASES: Mapping[str, Case] = {
    "trap of quiche's CUBIC": Case("stall --stack cubic(idle=recovery)", 300),
    "Copa and 1 ms of jitter": Case(
        "starve --stack copa(mode=default) --keep-time --scenario jitter.toml "
        "--space jitter-bounds.toml",
        60,
        least=False,
    ),
    "BBR at 40 and 80 ms": Case(
        "starve --stack bbr --scenario rtts.toml --space rtts-bounds.toml", 300, least=False
    ),
    "low-rate attack on Reno": Case(
        "--stack reno --scenario pulses.toml --space pulses-bounds.toml "
        f"--minimise '{_ATTACK}' --until 0.5",
        300,
    ),
    "stall of BBR": Case("stall --stack bbr", 300),
}


@dataclass(frozen=True)
class _Search:
    found_after: int | None
    keys: int
    value: float | None
    worst: Sequence[tuple[int, float]]
    """After how many runs which value was the worst."""


def searches(
    only: Annotated[str, typer.Option(help="Cases, separated by commas.", show_default="all")] = "",
    seeds: Annotated[int, typer.Option(help="Searches of each case.", min=1)] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Search for known weaknesses, next to as many and ten times as many random networks."""
    names = only.split(",") if only else list(CASES)
    for name in names:
        if name not in CASES:
            raise InputError(unknown("case", name, CASES))
    rows = []
    for name in names:
        output.note(name, quiet=False)
        rows.append({"weakness": name, **_row(CASES[name], seeds)})
    if json:
        output.print_json("bench-searches", rows)
    else:
        cells = [[_cell(value) for value in row.values()] for row in rows]
        screen.show(Grid("Weaknesses found again", list(rows[0]), cells).rich())


def _cell(value: str | float | None) -> str:
    return value if isinstance(value, str) else "–" if value is None else f"{value:.4g}"


def _row(case: Case, seeds: int) -> dict[str, str | float | None]:
    most = _TIMES * case.runs
    found, random, worst, needed = [], [], [], []
    for seed in range(1, seeds + 1):
        found.append(_searched(case, seed, most))
        random.append(_searched(case, seed, most, "--random", "--no-shrink"))
        ours = _searched(case, seed, case.runs, "--no-stop", "--no-shrink").worst[-1][1]
        theirs = _searched(case, seed, most, "--no-stop", "--no-shrink", "--random").worst
        reached = (n for n, value in theirs if (value <= ours if case.least else value >= ours))
        worst.append(ours)
        needed.append(next(reached, None))
    values = [one.value for one in found if one.value is not None]
    return {
        "found after": _middle([one.found_after for one in found], most),
        "at random": _middle([one.found_after for one in random], most),
        "keys left": max(one.keys for one in found),
        "value": median(values) if values else None,
        "budget": case.runs,
        "worst of it": median(worst),
        "as bad at random": _middle(needed, most),
    }


def _middle(runs: Sequence[int | None], most: int) -> str | float:
    """The median; what was not found counts as more than all."""
    middle = median(most + 1 if one is None else one for one in runs)
    return f"over {most}" if middle > most else middle


def _searched(case: Case, seed: int, runs: int, *options: str) -> _Search:
    with TemporaryDirectory() as folder:
        budget = ("--budget", str(runs), "--seed", str(seed), "--json", "--out", folder)
        arguments = [*shlex.split(case.arguments), *budget, *options]
        ended = subprocess.run(
            [sys.executable, "-m", "weir", "search", *arguments],
            cwd=_FOLDER,
            capture_output=True,
            text=True,
            check=False,
        )
    if ended.returncode != 0:
        raise RunError(ended.stderr.strip())
    (finding,) = texts.loads(ended.stdout)["rows"]
    seen = [(int(n), float(value)) for n, value in _PROGRESS.findall(ended.stderr)]
    after = finding["runs_until_found"] if finding["found"] else None
    return _Search(after, len(finding["keys"]), finding["value"].get("mean"), seen)


if __name__ == "__main__":
    command.run(searches, "bench.searches")
