"""Candidates that race: paired seeds, successive halving, and an indifference zone.

All candidates of a race have the same seeds and networks. After a first round the best third goes
on with three times as many seeds, which include the earlier ones, and so on (successive halving:
Jamieson and Talwalkar 2016). A candidate also leaves when it is worse than the best by more than
chance explains, given that differences below `delta` do not matter (Kim and Nelson 2001).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, variance

from weir.search.expressions import Expression
from weir.search.loop import Loop, Question
from weir.search.space import Keys, Point

FIRST_SEEDS = 3
_FACTOR = 3
_ROUNDS = 3
_ALPHA = 0.05
_INVALID = 1e12
"""What a broken bound costs: more than any goal."""


@dataclass(frozen=True)
class Goal:
    """An expression to minimise (`sign` 1) or to maximise (-1)."""

    expression: Expression
    sign: int


@dataclass(eq=False)
class Candidate:
    """Keys, and what was measured with them."""

    keys: Keys
    point: Point | None = None
    """Where in the space; None for the default."""
    values: dict[tuple[int, int], Sequence[float | None]] = field(default_factory=dict)
    """By network and seed."""
    refused: str = ""
    """Why it cannot run, or has no value."""

    @property
    def seeds(self) -> int:
        """Number of seeds so far."""
        return len({seed for _, seed in self.values})


@dataclass
class Race:
    """Runs races on some networks, and ranks candidates."""

    loop: Loop
    goals: Sequence[Goal]
    bounds: Sequence[Expression]
    """The measures of a question are the goals, then these."""
    networks: Sequence[Keys]
    seed: int
    relevant: float
    """Smallest relevant difference, as a share of the default's value."""
    scales: list[list[float]] = field(default_factory=list)
    """By network and goal: what a value is divided by, so that each network weighs the same."""

    def measure(self, candidates: Iterable[Candidate], seeds: int) -> None:
        """Brings the candidates to a number of seeds."""
        missing = [
            (one, network, seed)
            for seed in range(self.seed, self.seed + seeds)
            for one in candidates
            for network in range(len(self.networks))
            if (network, seed) not in one.values and not one.refused
        ]
        questions = [Question(one.keys, seed, self.networks[n]) for one, n, seed in missing]
        for (one, n, seed), answer in zip(missing, self.loop.answers(questions), strict=True):
            if answer.error or None in answer.values:
                one.refused = answer.error or "a run has no value of a goal or a bound"
            one.values[n, seed] = answer.values

    def set_scales(self, default: Candidate) -> None:
        """Values count relative to those of this candidate, if there are several networks."""
        networks, goals = range(len(self.networks)), range(len(self.goals))
        if len(networks) > 1 and not default.refused:
            means = [[fmean(_column(default, n, goal)) for goal in goals] for n in networks]
            self.scales = [[abs(mean) or 1.0 for mean in row] for row in means]
        else:
            self.scales = [[1.0 for _ in goals] for _ in networks]

    def costs(self, one: Candidate, goal: int, most: int | None = None) -> list[float]:
        """By seed, the mean over the networks; less is better. `most` limits the seeds."""
        sign = self.goals[goal].sign
        seeds = sorted({seed for _, seed in one.values})[:most]
        return [
            fmean(
                sign * float(one.values[(n, seed)][goal] or 0.0) / self.scales[n][goal]
                for n in range(len(self.networks))
            )
            for seed in seeds
        ]

    def by_seed(self, one: Candidate, goal: int) -> dict[int, float | None]:
        """Its values of a goal, of each seed the mean; none if it cannot run."""
        costs = [] if one.refused else self.costs(one, goal)
        return dict(enumerate(self.goals[goal].sign * cost for cost in costs))

    def violation(self, one: Candidate) -> float:
        """By how much bounds are broken, summed up; 0 if each network keeps all."""
        first = len(self.goals)
        excess = (
            fmean(_column(one, network, first + bound))
            for bound in range(len(self.bounds))
            for network in range(len(self.networks))
        )
        return math.fsum(max(0.0, each) for each in excess)

    def score(self, one: Candidate, most: int | None = None) -> float | None:
        """The first goal, or more than any goal where bounds are broken; less is better."""
        if one.refused or not one.values:
            return None
        broken = self.violation(one)
        return _INVALID + broken if broken > 0 else fmean(self.costs(one, 0, most))

    def run(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Races the candidates; returns those of the last round, the best one first."""
        alive = list(candidates)
        for number in range(_ROUNDS):
            seeds = FIRST_SEEDS * _FACTOR**number
            self.measure(alive, seeds)
            ranked = self.ranked(alive, seeds)
            if len(ranked) <= 1 or self.loop.is_spent:
                break
            kept = ranked[: math.ceil(len(ranked) / _FACTOR)]
            alive = self._survivors(kept, len(candidates), seeds)
        return ranked

    def ranked(self, candidates: Iterable[Candidate], most: int | None = None) -> list[Candidate]:
        """Those that have a score, the best one first.

        With several goals front by front, and in a front those with the most space around them
        first (Deb et al. 2002).
        """
        scored = {one: s for one in candidates if (s := self.score(one, most)) is not None}
        ordered = sorted(scored, key=scored.__getitem__)
        if len(self.goals) == 1:
            return ordered
        valid = [one for one, score in scored.items() if score < _INVALID]
        broken = [one for one in ordered if scored[one] >= _INVALID]
        fronts: list[Candidate] = []
        while valid:
            front = self.front(valid, most)
            fronts += front
            valid = [one for one in valid if one not in front]
        return fronts + broken

    def front(self, candidates: Sequence[Candidate], most: int | None = None) -> list[Candidate]:
        """Those that no other one beats in every goal, the ones with most space around first."""
        if not candidates:
            return []
        goals = range(len(self.goals))
        means = {c: tuple(fmean(self.costs(c, g, most)) for g in goals) for c in candidates}
        first = {own: c for c, own in reversed(means.items())}  # equal ones are one
        kept = [c for own, c in first.items() if not any(_beats(other, own) for other in first)]
        space = dict.fromkeys(kept, 0.0)
        for goal in goals:
            line = sorted(kept, key=lambda c: means[c][goal])
            span = means[line[-1]][goal] - means[line[0]][goal] or 1.0
            space[line[0]] = space[line[-1]] = math.inf
            for before, one, after in zip(line, line[1:], line[2:], strict=False):
                space[one] += (means[after][goal] - means[before][goal]) / span
        kept = [one for one in candidates if one in space]
        return sorted(kept, key=lambda one: -space[one])

    def _survivors(self, ranked: Sequence[Candidate], entered: int, seeds: int) -> list[Candidate]:
        """Without those that are worse than the best beyond chance and the indifference zone."""
        if len(self.goals) > 1 or self.violation(ranked[0]) > 0:
            return list(ranked)
        best = self.costs(ranked[0], 0, seeds)
        delta = self.relevant * abs(fmean(best))
        costs = {one: self.costs(one, 0, seeds) for one in ranked}
        worse = {one: [a - b for a, b in zip(costs[one], best, strict=True)] for one in ranked}
        return [one for one, by in worse.items() if fmean(by) <= allowance(by, delta, entered)]


def allowance(differences: Sequence[float], delta: float, candidates: int) -> float:
    """By how much a candidate may be worse after these runs (Kim and Nelson 2001).

    W(r) = max(0, delta/(2r) (h² S²/delta² - r)) with h² = 2 eta (n - 1) and
    eta = ((2 level/(k-1))^(-2/(n-1)) - 1)/2, for k candidates whose variance S² is that of n = r
    runs.
    """
    r = len(differences)
    if r < 2 or delta == 0 or candidates < 2:
        return delta
    eta = (math.pow(2 * _ALPHA / (candidates - 1), -2 / (r - 1)) - 1) / 2
    h2 = 2 * eta * (r - 1)
    return max(0.0, delta / (2 * r) * (h2 * variance(differences) / delta**2 - r))


def hypervolume(front: Sequence[tuple[float, ...]], reference: Sequence[float]) -> float:
    """The area that two costs dominate up to a reference point; less of each is better."""
    area, floor = 0.0, reference[1]
    for one, other in sorted(front):
        if one < reference[0] and other < floor:
            area += (reference[0] - one) * (floor - other)
            floor = other
    return area


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    pairs = list(zip(one, other, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def _column(one: Candidate, network: int, measure: int) -> list[float]:
    return [float(v[measure] or 0.0) for (n, _), v in sorted(one.values.items()) if n == network]
