"""The command `python -m bench.flood`.

Ten kinds of attacker attack a `weir recv` at once, from thousands of loopback addresses, while an
honest sender sends it a large file and another one sends small files. The command measures the
receiver's memory, how much longer the large file takes, and the longest time between small files.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from bench import command
from bench.flood.attackers import KINDS
from bench.flood.measure import Flood, run


def flood(
    seconds: Annotated[float, typer.Option(min=1, help="How long the attack lasts.")] = 60.0,
    per_s: Annotated[int, typer.Option(min=1, help="Steps of all attackers per second.")] = 2_000,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 1,
    only: Annotated[str, typer.Option(help="Kinds of attacker, comma-separated.")] = "",
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Attacks a receiver in ten ways, and measures the effect on honest senders."""
    kinds = tuple(only.split(",")) if only else tuple(KINDS)
    for kind in kinds:
        if kind not in KINDS:
            raise typer.BadParameter(f"--only: no kind '{kind}'; there are {', '.join(KINDS)}")
    outcome = run(Flood(seconds=seconds, per_s=per_s, seed=seed, kinds=kinds))
    faults = outcome.faults()
    if json_:
        print(json.dumps({**asdict(outcome), "faults": faults}))
    else:
        print(f"{outcome.steps} steps of {len(kinds)} kinds of attacker in {seconds:g} s")
        print(f"receiver's memory at most {outcome.peak_rss_mib:.0f} MiB")
        print(f"60 MB: {outcome.alone_s:.2f} s alone, {outcome.attacked_s:.2f} s under attack")
        print(
            f"{outcome.small_served} small files, at most {outcome.longest_unserved_s:.1f} s apart"
        )
        print("holds" if not faults else f"does not hold: {'; '.join(faults)}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    command.run(flood, "bench.flood")
