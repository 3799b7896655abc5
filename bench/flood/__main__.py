"""The command `python -m bench.flood`.

It has three parts. `together`: thirteen kinds of attacker attack a `weir recv` at once, from
loopback addresses. An honest sender sends it a large file and another one sends small files. The
command measures the receiver's memory, how much longer the large file takes, and the longest time
between small files. `alone`: each attack by itself, from 1, 40 and 1,000 addresses, and how long
honest users wait. `injected`: forged datagrams in transfers.
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
from bench.flood.measure import Flood, Outcome, run
from bench.flood.places import ADDRESSES, ATTACKS, IN_TIME_S, Wait, measure

PARTS = ("together", "alone", "injected")


def flood(
    part: Annotated[str, typer.Option(help="Parts, comma-separated.")] = ",".join(PARTS),
    only: Annotated[str, typer.Option(help="Kinds of attacker, comma-separated.")] = "",
    addresses: Annotated[
        str, typer.Option(help="Addresses of attackers in part 'alone', comma-separated.")
    ] = ",".join(map(str, ADDRESSES)),
    seconds: Annotated[
        float, typer.Option(min=1, help="How long the attack of part 'together' lasts.")
    ] = 60.0,
    per_s: Annotated[
        int, typer.Option(min=1, help="Steps of all attackers of part 'together' per second.")
    ] = Flood().per_s,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 1,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Attacks receivers, path-test servers and relays, and measures the effect on honest users."""
    parts = _chosen(part, PARTS, "--part")
    attacks = _chosen(only, ATTACKS, "--only") if only else ATTACKS
    kinds = tuple(kind for kind in KINDS if kind in attacks)
    numbers = tuple(int(one) for one in addresses.split(",") if one)
    outcome = None
    if "together" in parts and kinds:
        outcome = run(Flood(seconds=seconds, per_s=per_s, seed=seed, kinds=kinds))
        if not json_:
            _print_outcome(outcome)
    waits = []
    for attack in attacks if "alone" in parts else ():
        for number in numbers:
            waits.append(measure(attack, number))
            if not json_:
                _print_wait(waits[-1])
    injected = [injection.measure(attack) for attack in injection.ATTACKS if "injected" in parts]
    faults = (outcome.faults() if outcome else []) + _faults(waits, injected)
    if json_:
        more = {"waits": list(map(asdict, waits)), "injected": list(map(asdict, injected))}
        print(json.dumps({**(asdict(outcome) if outcome else {}), **more, "faults": faults}))
    else:
        for one in injected:
            what = f"{one.forged} forged datagrams, {one.reconnects} connections lost"
            done = f"{one.complete} of {one.transfers} files complete, {one.wrong} wrong"
            done += f", {one.seconds:.1f} s"
            print(f"{one.attack}: {what}, {done}")
        print("holds" if not faults else f"does not hold: {'; '.join(faults)}")
    sys.exit(1 if faults else 0)


def _chosen(given: str, there: tuple[str, ...], option: str) -> tuple[str, ...]:
    chosen = tuple(one.strip() for one in given.split(",") if one.strip())
    for one in chosen:
        if one not in there:
            raise typer.BadParameter(f"{option}: no '{one}'; there are {', '.join(there)}")
    return chosen


def _faults(waits: list[Wait], injected: list[injection.Injected]) -> list[str]:
    faults = []
    for wait in waits:
        what = f"'{wait.attack}' of {wait.addresses} addresses: "
        if wait.longest_s > IN_TIME_S:
            faults.append(f"{what}an honest user ends within {IN_TIME_S:g} s")
        faults += [what + fault for fault in wait.faults]
    for one in injected:
        harms = one.attack in injection.HARMFUL
        if one.wrong:
            faults.append(f"'{one.attack}' publishes no other content")
        if not harms and (one.reconnects or one.complete < one.transfers):
            faults.append(f"'{one.attack}' delays and ends nothing")
        if harms and not one.reconnects:
            faults.append(f"'{one.attack}' attacks and is not turned away for its form")
    return faults


def _print_outcome(outcome: Outcome) -> None:
    steps, kinds = sum(outcome.attack.steps.values()), len(outcome.attack.steps)
    rate = f"{outcome.steps_per_s:.0f} a second, {outcome.attained:.0%} of the configured rate"
    print(f"{steps} steps of {kinds} kinds of attacker in {outcome.seconds:.0f} s: {rate}")
    for kind, count in outcome.attack.steps.items():
        heard, away = outcome.attack.heard[kind], outcome.attack.turned_away[kind]
        print(f"  {kind}: {count} steps, {heard} answers, {away} turned away for their form")
    print(f"receiver's memory at most {outcome.peak_rss_mib:.0f} MiB")
    print(f"receiver computed for {outcome.receiver_cpu_s:.1f} s")
    times = f"{outcome.alone_s:.2f} s alone, {outcome.elsewhere_s:.2f} s next to an attack on"
    print(f"60 MB: {times} another receiver, {outcome.attacked_s:.2f} s under attack")
    print(f"{outcome.small_served} small files, at most {outcome.longest_unserved_s:.1f} s apart")


def _print_wait(wait: Wait) -> None:
    what = f"{wait.attack} from {wait.addresses} addresses, {wait.per_s:.0f} steps a second"
    answers = f"{wait.heard} answers, {wait.turned_away} turned away for their form"
    times = ", ".join(f"{time:.1f}" for time in wait.times_s)
    print(f"{what}: honest users end after {times} s; {answers}", flush=True)


if __name__ == "__main__":
    command.run(flood, "bench.flood")
