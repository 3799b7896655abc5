"""Runs every study, goes on after a failure, and says how long each took.

`--write` puts the times into the table of docs/studies/README.md. What needs another build or a
guest's kernel fails with its reason, and is named at the end.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/studies/README.md"
BEGIN, END = "<!-- times: generated -->", "<!-- end of times -->"
WEIR = (sys.executable, "-m", "weir")
SIZES = ("small", "full")
NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Took:
    """A run of a study: seconds, and why it failed, if it did."""

    wall_s: float
    cpu_s: float
    failure: str = ""

    def __str__(self) -> str:
        times = f"{_span(self.wall_s)} ({_span(self.cpu_s)} CPU)"
        return f"failed after {times}" if self.failure else times


def main() -> int:
    """Runs them; 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="studies; all by default")
    parser.add_argument("--size", choices=SIZES, default=SIZES[0])
    parser.add_argument("--write", action="store_true", help="write the times into the docs")
    parser.add_argument("--jobs", help="runs at a time; a study's own number by default")
    given = parser.parse_args()
    options = ["--jobs", given.jobs] if given.jobs else []
    took = {}
    for name in given.names or _studies():
        print(f"study {name}, {given.size} size", flush=True)
        took[name] = _run(name, ["--size", given.size, *options])
        print(f"study {name}: {took[name]}", flush=True)
        if given.write:
            write(took, given.size)
    failed = {name: own.failure for name, own in took.items() if own.failure}
    for name, failure in failed.items():
        print(f"failed: study {name}: {failure}", file=sys.stderr)
    return 1 if failed else 0


def _studies() -> list[str]:
    listed = subprocess.run(  # noqa: S603 - our own command
        [*WEIR, "list", "studies", "--json"], check=True, capture_output=True, text=True
    )
    return [row["name"] for row in json.loads(listed.stdout)["rows"]]


def _run(name: str, options: Sequence[str]) -> Took:
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(  # noqa: S603 - our own command
        [*WEIR, "study", name, *options], check=False, stderr=subprocess.PIPE, text=True
    )
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = done.stderr.strip().splitlines() or ["no message"]
    return Took(wall, cpu, said[-1] if done.returncode else "")


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def write(took: Mapping[str, Took], size: str) -> None:
    """Puts times of one size into the table, next to what it has of the other."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    table, after = rest.split(END)
    rows = {
        name: [small, full]
        for name, small, full in re.findall(r"^\| `(\S+)` \| (.*?) \| (.*?) \|$", table, re.M)
    }
    for name, own in took.items():
        rows.setdefault(name, [NOT_MEASURED] * 2)[SIZES.index(size)] = str(own)
    lines = ["| study | small | full |", "|---|---|---|"]
    lines += [f"| `{name}` | {small} | {full} |" for name, (small, full) in sorted(rows.items())]
    table = "\n\n" + "\n".join(lines) + "\n\n"
    PAGE.write_text(f"{before}{BEGIN}{table}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
