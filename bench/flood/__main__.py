"""The command `python -m bench.flood`.

Thirteen kinds of attacker attack a `weir recv` at once, from thousands of loopback addresses. An
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
from bench.flood import injection
from bench.flood.attackers import KINDS
from bench.flood.measure import Flood, run
from bench.flood.places import ADDRESSES, ATTACKS, IN_TIME_S, measure


def flood(
    seconds: Annotated[float, typer.Option(min=1, help="How long the attack lasts.")] = 60.0,
    per_s: Annotated[int, typer.Option(min=1, help="Steps of all attackers per second.")] = 2_000,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 1,
    only: Annotated[str, typer.Option(help="Kinds of attacker, comma-separated.")] = "",
    places: Annotated[
        str, typer.Option(help="Addresses of unknown peers that take places, comma-separated.")
    ] = ",".join(map(str, ADDRESSES)),
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Attacks a receiver in thirteen ways, and measures the effect on honest senders."""
    kinds = tuple(only.split(",")) if only else tuple(KINDS)
    for kind in kinds:
        if kind not in KINDS:
            raise typer.BadParameter(f"--only: no kind '{kind}'; there are {', '.join(KINDS)}")
    numbers = tuple(int(one) for one in places.split(",") if one)
    outcome = run(Flood(seconds=seconds, per_s=per_s, seed=seed, kinds=kinds))
    waits = [measure(attack, addresses) for attack in ATTACKS for addresses in numbers]
    injected = [injection.measure(attack) for attack in injection.ATTACKS]
    faults = outcome.faults() + [
        f"'{wait.attack}' of {wait.addresses} addresses: an honest user ends within {IN_TIME_S:g} s"
        for wait in waits
        if wait.longest_s > IN_TIME_S
    ]
    faults += [
        f"'{wait.attack}' of {wait.addresses} addresses attacks and is not turned away for its form"
        for wait in waits
        if not wait.attacks
    ]
    faults += [f"'{one.attack}' publishes no other content" for one in injected if one.wrong]
    faults += [
        f"'{one.attack}' delays and ends nothing"
        for one in injected
        if one.attack not in injection.HARMFUL and (one.reconnects or one.complete < one.transfers)
    ]
    faults += [
        f"'{one.attack}' attacks and is not turned away for its form"
        for one in injected
        if one.attack in injection.HARMFUL and not one.reconnects
    ]
    if json_:
        more = {"waits": list(map(asdict, waits)), "injected": list(map(asdict, injected))}
        print(json.dumps({**asdict(outcome), **more, "faults": faults}))
    else:
        print(f"{outcome.steps} steps of {len(kinds)} kinds of attacker in {seconds:g} s")
        print(f"receiver's memory at most {outcome.peak_rss_mib:.0f} MiB")
        print(f"60 MB: {outcome.alone_s:.2f} s alone, {outcome.attacked_s:.2f} s under attack")
        print(
            f"{outcome.small_served} small files, at most {outcome.longest_unserved_s:.1f} s apart"
        )
        print(f"answers to attackers in form: {_counts(outcome.heard)}")
        for wait in waits:
            what = f"{wait.attack} from {wait.addresses} addresses"
            answers = f"{wait.heard} attackers heard, {wait.turned_away} turned away"
            print(f"{what}: honest users end within {wait.longest_s:.1f} s; {answers}")
        for one in injected:
            what = f"{one.forged} forged datagrams, {one.reconnects} connections lost"
            done = f"{one.complete} of {one.transfers} files complete, {one.wrong} wrong"
            done += f", {one.seconds:.1f} s"
            print(f"{one.attack}: {what}, {done}")
        print("holds" if not faults else f"does not hold: {'; '.join(faults)}")
    sys.exit(1 if faults else 0)


def _counts(by_kind: dict[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in by_kind.items())


if __name__ == "__main__":
    command.run(flood, "bench.flood")
