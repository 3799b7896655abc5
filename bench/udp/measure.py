"""Runs a case: rounds in which each contender has one turn, and the ratios within them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.udp.cases import BEST, Case, Goal
from weir.transfer.ends import Programs
from weir.transfer.model import Outcome
from weir.transfer.site import Site

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


def run_plan(site: Site, case: Case, rounds: int, programs: Mapping[str, Programs]) -> list[Round]:
    """All turns. Each round begins with another contender, so that none is always the first.

    Where packets are lost, the same ones are for all contenders of a round: one that is lost early
    costs a cubic controller most of a transfer.
    """
    names = list(case.contenders)
    done: list[Round] = []
    for number in range(min(rounds, case.max_rounds or rounds)):
        first = number % len(names)
        seed = number + 1 if case.network.loss_percent else None
        turns = {}
        for name in (*names[first:], *names[:first]):
            transfer = case.contenders[name]
            replaced = programs.get(transfer.protocol)
            turns[name] = site.run(transfer, case.network, case.limit_s, replaced, seed)
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
    resent = Spread.of([turn.resent for turn in good if turn.resent is not None])
    return {
        "case": case.name,
        "contender": name,
        "size_bytes": case.size_bytes,
        "rounds": len(turns),
        "intact": len(good),
        **_spread("seconds", took),
        "cpu_s": None if cpu is None else cpu.median,
        "cpu_s_per_gb": None if cpu is None else cpu.median / case.size_bytes * 1e9,
        "resent": None if resent is None else resent.median,
        "against": reference,
        **_compared(Goal(name, reference, 1.0), case, rounds),
        "failure": next((turn.failure for turn in turns if turn.failure), ""),
        "goals": [_judged(goal, case, rounds) for goal in case.goals if goal.contender == name],
    }


def _judged(goal: Goal, case: Case, rounds: Sequence[Round]) -> Row:
    """A goal is held if the median is, and if every file arrived intact.

    A median that may be smaller than it seems misses no goal: it leaves it open.
    """
    found = _compared(goal, case, rounds)
    whole = all(turn[goal.contender].is_intact for turn in rounds)
    held = None if found["ratio"] is None else whole and found["ratio"] <= goal.at_most
    return {
        "quantity": goal.quantity,
        "against": goal.against,
        "at_most": goal.at_most,
        **found,
        "held": None if found["ratio_is_bound"] and whole and not held else held,
    }


def _compared(goal: Goal, case: Case, rounds: Sequence[Round]) -> Row:
    """The ratios of what the goal is about, round by round; none where the other was not there.

    One that ran out of time would have taken longer: then the ratio is less than that to the limit.
    """
    found = []
    bounds = 0
    for turns in rounds:
        own, other = turns[goal.contender], turns.get(goal.against)
        if goal.against == BEST:
            other = _best(case, turns)
        ran_out = goal.quantity == "time" and other is not None and other.timed_out
        base = case.limit_s if ran_out else _base(goal, case, other)
        value = _value(goal, own)
        if own.is_intact and value is not None and base:
            found.append(value / base)
            bounds += ran_out
    return {**_spread("ratio", Spread.of(found)), "ratio_is_bound": bounds > 0}


def _value(goal: Goal, own: Outcome) -> float | None:
    if goal.quantity == "sent again":
        return own.resent
    return _cpu_s(own) if goal.quantity == "CPU time" else own.seconds


def _best(case: Case, turns: Round) -> Outcome | None:
    """The quickest intact transfer of another protocol than ours."""
    others = (
        turn
        for name, turn in turns.items()
        if case.contenders[name].protocol != "weir" and turn.is_intact
    )
    return min(others, key=lambda turn: turn.seconds or 0.0, default=None)


def _base(goal: Goal, case: Case, other: Outcome | None) -> float | None:
    """What the goal's quantity is a multiple of."""
    if goal.quantity == "round trips":
        return 2e-3 * case.network.delay_ms
    if goal.quantity == "sent again":
        return 0.01
    if other is None or not other.is_intact:
        return None
    return _cpu_s(other) if goal.quantity == "CPU time" else other.seconds


def _cpu_s(turn: Outcome) -> float | None:
    """CPU time of both ends."""
    if turn.send_cpu_s is None or turn.receive_cpu_s is None:
        return None
    return turn.send_cpu_s + turn.receive_cpu_s


def _spread(name: str, found: Spread | None) -> Row:
    values = (None, None, None) if found is None else (found.median, found.low, found.high)
    return dict(zip((name, f"{name}_min", f"{name}_max"), values, strict=True))
