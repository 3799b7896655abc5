"""Attackers in processes of their own, so that they take no time from honest senders."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from bench.flood.attackers import KINDS, UNANSWERED
from bench.flood.target import Target

Counts: TypeAlias = "multiprocessing.sharedctypes.SynchronizedArray[int]"
"""Three numbers per kind of attacker, as in `Attack`."""


@dataclass(frozen=True, slots=True)
class Attack:
    """What attackers have done so far."""

    steps: dict[str, int]
    """By kind: datagrams sent, or connections begun,"""
    heard: dict[str, int]
    """how often one got an answer that senders in form get,"""
    turned_away: dict[str, int]
    """and how often one was turned away because of its form."""

    def faults(self, unanswered: Collection[str] = UNANSWERED) -> list[str]:
        """Which kinds attacked nothing."""
        answered = [kind for kind in self.steps if kind not in unanswered]
        return [f"'{kind}' gets answers" for kind in answered if not self.heard[kind]] + [
            f"'{kind}' is not turned away for its form"
            for kind in answered
            if self.turned_away[kind]
        ]


@contextmanager
def attackers(
    target: Target, kinds: Sequence[str], per_s: int, seed: int = 1, processes: int = 2
) -> Iterator[Callable[[], Attack]]:
    """Runs attackers, all kinds in turn with this many steps a second in all.

    Yields a function that returns what they have done.
    """
    spawn = multiprocessing.get_context("spawn")
    counts: list[Counts] = [spawn.Array("q", 3 * len(kinds)) for _ in range(processes)]
    work = [
        spawn.Process(
            target=_work,
            args=(target, tuple(kinds), per_s / processes, f"{seed} {n}", counts[n]),
            daemon=True,
        )
        for n in range(processes)
    ]

    def so_far() -> Attack:
        totals = [sum(each) for each in zip(*counts, strict=True)]
        thirds = [totals[n * len(kinds) : (n + 1) * len(kinds)] for n in range(3)]
        return Attack(*(dict(zip(kinds, third, strict=True)) for third in thirds))

    for one in work:
        one.start()
    try:
        yield so_far
        if not all(one.is_alive() for one in work):
            raise RuntimeError(f"attackers have ended: {', '.join(kinds)}")
    finally:
        for one in work:
            one.kill()
            one.join()


def _work(target: Target, kinds: tuple[str, ...], per_s: float, seed: str, counts: Counts) -> None:
    """Every kind in turn. What could not be done in time is not done later."""
    rng = random.Random(seed)  # noqa: S311
    generators = {kind: KINDS[kind](rng, target) for kind in kinds}
    due = time.monotonic()
    while True:
        for kind, steps in generators.items():
            next(steps)
            target.steps[kind] += 1
            now = time.monotonic()
            due = max(due + 1 / per_s, now - 1)
            time.sleep(max(0.0, due - now))
        all_counts = (target.steps, target.heard, target.turned_away)
        counts[:] = [of[kind] for of in all_counts for kind in kinds]
