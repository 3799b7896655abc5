"""Carries out a case: rounds in which each contender has one turn, and the ratios within them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from weir.bench.udp.cases import Case, Goal
from weir.transfers import Outcome, Site
from weir.transfers.ends import Programs

Row = dict[str, Any]

Round = Mapping[str, Outcome]
"""What became of each contender's turn."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some values, between the smallest and the largest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """That of any values, if there are some."""
        return cls(median(values), min(values), max(values)) if values else None


def carry_out(site: Site, case: Case, rounds: int, programs: Mapping[str, Programs]) -> list[Round]:
    """All turns. Each round begins with another contender, so that none is always the first.

    Where packets are lost, the same ones are for all contenders of a round: one that is lost early
    costs a cubic controller most of a transfer.
    """
    names = list(case.contenders)
    done: list[Round] = []
    for number in range(rounds):
        first = number % len(names)
        seed = number + 1 if case.network.loss_percent else None
        turns = {}
        for name in (*names[first:], *names[:first]):
            transfer = case.contenders[name]
            replaced = programs.get(transfer.protocol)
            turns[name] = site.carry(transfer, case.network, case.limit_s, replaced, seed)
        done.append(turns)
    return done


def rows(case: Case, rounds: Sequence[Round]) -> list[Row]:
    """A row per contender, with the goals that are about it."""
    return [_row(case, name, rounds) for name in case.contenders]


def _row(case: Case, name: str, rounds: Sequence[Round]) -> Row:
    turns = [turn[name] for turn in rounds]
    good = [turn for turn in turns if turn.is_intact]
    took = Spread.of([turn.seconds for turn in good if turn.seconds is not None])
    cpu = Spread.of([cpu for turn in good if (cpu := _cpu_s(turn)) is not None])
    reference = next(iter(case.contenders))
    return {
        "case": case.name,
        "contender": name,
        "size_bytes": case.size_bytes,
        "rounds": len(turns),
        "intact": len(good),
        **_spread("seconds", took),
        "cpu_s": None if cpu is None else cpu.median,
        "cpu_s_per_gb": None if cpu is None else cpu.median / case.size_bytes * 1e9,
        "against": reference,
        **_spread("ratio", _ratio(Goal(name, reference, 1.0), case, rounds)),
        "failure": next((turn.failure for turn in turns if turn.failure), ""),
        "goals": [_judged(goal, case, rounds) for goal in case.goals if goal.contender == name],
    }


def _judged(goal: Goal, case: Case, rounds: Sequence[Round]) -> Row:
    """A goal is held if the median is, and if every file arrived intact."""
    found = _ratio(goal, case, rounds)
    whole = all(turn[goal.contender].is_intact for turn in rounds)
    return {
        "quantity": goal.quantity,
        "against": goal.against,
        "at_most": goal.at_most,
        **_spread("ratio", found),
        "held": None if found is None else whole and found.median <= goal.at_most,
    }


def _ratio(goal: Goal, case: Case, rounds: Sequence[Round]) -> Spread | None:
    """Of what the goal is about, round by round; None where the other was not there."""
    found = []
    for turns in rounds:
        own = turns[goal.contender]
        pair = _compared(goal, case, own, turns.get(goal.against))
        if own.is_intact and pair and pair[0] is not None and pair[1]:
            found.append(pair[0] / pair[1])
    return Spread.of(found)


def _compared(
    goal: Goal, case: Case, own: Outcome, other: Outcome | None
) -> tuple[float | None, float | None] | None:
    """The two quantities that a goal sets in relation."""
    if goal.quantity == "round trips":
        return own.seconds, 2e-3 * case.network.delay_ms
    if other is None or not other.is_intact:
        return None
    if goal.quantity == "CPU time":
        return _cpu_s(own), _cpu_s(other)
    return own.seconds, other.seconds


def _cpu_s(turn: Outcome) -> float | None:
    """CPU time of both ends."""
    if turn.send_cpu_s is None or turn.receive_cpu_s is None:
        return None
    return turn.send_cpu_s + turn.receive_cpu_s


def _spread(name: str, found: Spread | None) -> Row:
    values = (None, None, None) if found is None else (found.median, found.low, found.high)
    return dict(zip((name, f"{name}_min", f"{name}_max"), values, strict=True))
