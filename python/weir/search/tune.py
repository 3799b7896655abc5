"""`weir tune`: what serves best, judged on seeds and networks that it was not tuned on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from weir.base.errors import InputError
from weir.comparison.contrasts import RELEVANT
from weir.running.execution import Execution
from weir.scenario.sweep import points
from weir.search.engine import Evolution
from weir.search.expressions import Expression
from weir.search.loop import BUDGET, FRESH, Tell, opened, shown
from weir.search.problem import Problem, held_out
from weir.search.racing import FIRST_SEEDS, Candidate, Goal, Race, hypervolume
from weir.search.space import Bounds, Keys, option
from weir.statistics.intervals import Difference, Estimate, holm, mean_interval, paired_difference

_IN_A_RACE = 27
_FINALISTS = 3
_FRONT = 8
_LEVEL = 0.05
_USUAL = "log_power"


@dataclass(frozen=True)
class TuneOptions:
    """What is tuned for, and for how long."""

    maximise: Annotated[
        Sequence[str],
        option(
            "Metric or expression to maximise; may be repeated.",
            metavar="EXPRESSION",
            default_text="log_power, goodput over RTT, without a goal",
        ),
    ] = ()
    minimise: Annotated[
        Sequence[str],
        option(
            "Metric or expression to minimise; may be repeated. Several goals give a Pareto front.",
            metavar="EXPRESSION",
        ),
    ] = ()
    subject_to: Annotated[
        Sequence[str],
        option(
            "Bound that each network keeps, as in 'utilisation >= 0.95'; may be repeated.",
            metavar="BOUND",
        ),
    ] = ()
    held_out: Annotated[
        Sequence[str],
        option(
            "Networks that judge the answer and that the search does not see; may be repeated.",
            metavar="KEY=A,B,C",
            default_text="between the values of {sweep}",
        ),
    ] = ()
    default: Annotated[
        str | None,
        option(
            "Stack to compare the answer with.",
            metavar="STACK",
            default_text="the stack without the parameters that vary",
        ),
    ] = None
    scenario: Annotated[
        Path | None, option("Scenario to tune in place of one bottleneck.", metavar="FILE")
    ] = None
    space: Bounds = None
    budget: Annotated[str, BUDGET] = "2000"
    fresh: Annotated[int, option("Fresh seeds that judge the answer.", min=2)] = 20

    def goals(self) -> list[Goal]:
        """What is maximised and minimised; the logarithm of power, if there is no goal.

        Raises:
            InputError: one is not valid.
        """
        most = self.maximise or (() if self.minimise else (_USUAL,))
        goals = [Goal(Expression.parse(text), -1) for text in most]
        return goals + [Goal(Expression.parse(text), 1) for text in self.minimise]


@dataclass(frozen=True)
class Judged:
    """A finalist on fresh seeds and one goal."""

    keys: Keys
    is_default: bool
    goal: Goal
    value: Estimate
    difference: Difference | None
    """To the default, seed by seed."""
    held_out: Difference | None
    """The same on held-out networks."""
    searched: float
    """The mean that the search itself had seen: too good, as the best of many."""
    keeps_bounds: bool
    adjusted_p: float | None = None
    """By Holm, over all finalists and goals."""


@dataclass(frozen=True)
class Tuned:
    """The answer."""

    finalists: Sequence[Judged]
    """The default first, if it can run; then the best. One entry per goal."""
    plateau: Mapping[str, tuple[str, str]]
    """By range: the ends between which candidates are as good as the best."""
    verdict: str
    warnings: Sequence[str]
    runs: int
    candidates: int
    networks: int
    held_out: Sequence[str]
    window: str
    hypervolume: float | None
    """What two goals dominate, up to the worst of each among finalists and default."""
    journal: str


def tune(
    problem: Problem,
    options: TuneOptions,
    how: Execution,
    relevant: float = RELEVANT,
    tell: Tell = lambda _: None,
) -> Tuned:
    """Searches, races, and judges the finalists.

    Raises:
        InputError, ScenarioError: an option is not valid, or no candidate can run.
    """
    goals, bounds = options.goals(), [Expression.bound(text) for text in options.subject_to]
    networks = list(points(problem.sweep))
    judging = points(held_out(problem.sweep, options.held_out))
    others = [one for one in judging if one not in networks]
    identity = {
        "space": [(one.key, one.template) for one in problem.space.keys],
        "networks": [networks, others],
        "options": [repr(options), problem.default, relevant],
    }
    measures = [one.value for one in (*(goal.expression for goal in goals), *bounds)]
    with opened("tune", identity, [problem.source], measures, options.budget, how) as loop:
        search = _Search(Race(loop, goals, bounds, networks, problem.seed, relevant), problem)
        search.run(tell)
        found = search.judged(others, options.fresh)
        verdict, warnings = _verdict(found, relevant)
        tuned = Tuned(
            found,
            search.plateau(),
            verdict,
            warnings,
            loop.runs,
            len(search.tried),
            len(networks),
            [shown(one) for one in others],
            problem.window,
            _hypervolume(found, len(goals)),
            str(loop.journal.path),
        )
        loop.journal.finish({"command": "tune", "rows": list(rows(tuned)), "verdict": verdict})
    return tuned


class _Search:
    """The candidates of one search."""

    def __init__(self, race: Race, problem: Problem) -> None:
        self.race, self.problem = race, problem
        self.default = None if problem.default is None else Candidate(problem.default)
        self.tried: dict[str, Candidate] = {}

    def run(self, tell: Tell) -> None:
        """Races until the budget is spent."""
        race, space = self.race, self.problem.space
        first = self.default or Candidate(space.at([0.5] * len(space.genes)))
        race.measure([first], FIRST_SEEDS)
        if first.refused:
            raise InputError(f"the default cannot be measured: {first.refused}")
        race.set_scales(first)
        self.tried[shown(first.keys)] = first
        elite: list[Candidate] = []
        stale = 0
        for number in itertools.count():
            new = self._new(number, _IN_A_RACE - 1 - len(elite))
            ranked = race.run([first, *elite, *new])
            if number == 0 and all(one.refused for one in new):
                raise InputError(f"no candidate can run; the first: {new[0].refused}")
            elite = [one for one in ranked if one is not first][:_FINALISTS]
            stale = 0 if new else stale + 1
            if ranked:
                best = shown(ranked[0].keys)
                tell(f"{race.loop.runs} runs, {len(self.tried)} candidates, best: {best}")
            if race.loop.is_spent or stale > _FINALISTS:
                return

    def _new(self, number: int, count: int) -> list[Candidate]:
        """Candidates for a race that were not in an earlier one, near the best of those."""
        engine = Evolution(self.problem.space.genes, self.problem.seed + 7919 * number)
        placed = self.race.ranked([one for one in self.tried.values() if one.point is not None])
        engine.tell([one.point or () for one in placed], [float(n) for n in range(len(placed))])
        new = [Candidate(self.problem.space.at(point), point) for point in engine.ask(count)]
        return [one for one in new if self.tried.setdefault(shown(one.keys), one) is one]

    def _finalists(self) -> list[Candidate]:
        """The best of those that raced longest, or the front."""
        race = self.race
        others = [o for o in self.tried.values() if o is not self.default and not o.refused]
        most = max((one.seeds for one in others), default=0)
        if len(race.goals) == 1:
            found = race.ranked([one for one in others if one.seeds == most])[:_FINALISTS]
        else:
            valid = [one for one in others if not race.violation(one)]
            longest = [one for one in valid if one.seeds > FIRST_SEEDS] or valid
            found = sorted(race.front(longest)[:_FRONT], key=lambda one: fmean(race.costs(one, 0)))
        if not found:
            raise InputError("no candidate has a value of every goal and keeps the bounds")
        return found

    def judged(self, others: Sequence[Keys], seeds: int) -> list[Judged]:
        """The default and the finalists on fresh seeds, with p-values for their number."""
        default = [] if self.default is None else [self.default]
        chosen, found = [*default, *self._finalists()], []
        fresh, again = self._measured_again(self.race.networks, chosen, seeds)
        other, elsewhere = self._measured_again(others, chosen, seeds)
        for number, one in enumerate(chosen):
            is_compared = bool(default) and number > 0
            for index, goal in enumerate(self.race.goals):
                value, usual = (fresh.by_seed(again[n], index) for n in (number, 0))
                there, usual_there = (other.by_seed(elsewhere[n], index) for n in (number, 0))
                found.append(
                    Judged(
                        one.keys,
                        one is self.default,
                        goal,
                        mean_interval(value.values()),
                        paired_difference(value, usual) if is_compared else None,
                        paired_difference(there, usual_there) if is_compared and others else None,
                        goal.sign * fmean(self.race.costs(one, index)),
                        not again[number].refused and fresh.violation(again[number]) == 0,
                    )
                )
        p_values = [one.difference.p_value if one.difference else None for one in found]
        adjusted = iter(holm([p for p in p_values if p is not None]))
        return [
            one if p_value is None else replace(one, adjusted_p=next(adjusted))
            for one, p_value in zip(found, p_values, strict=True)
        ]

    def _measured_again(
        self, networks: Sequence[Keys], chosen: Sequence[Candidate], seeds: int
    ) -> tuple[Race, list[Candidate]]:
        """Candidates on seeds that the search did not see, relative to the first one."""
        judge = replace(self.race, networks=networks, seed=self.race.seed + FRESH)
        again = [Candidate(one.keys) for one in chosen]
        judge.measure(again, seeds)
        judge.set_scales(again[0])
        return judge, again

    def plateau(self) -> dict[str, tuple[str, str]]:
        """Between which ends candidates are within the relevant difference of the best."""
        race, space = self.race, self.problem.space
        if len(race.goals) > 1:
            return {}
        placed = [o for o in self.tried.values() if o.point is not None and not o.refused]
        scored = {one: s for one in placed if (s := race.score(one)) is not None}
        most = max(one.seeds for one in scored)
        best = min(s for one, s in scored.items() if one.seeds == most)
        good = [one for one, s in scored.items() if s <= best + race.relevant * abs(best)]
        found = {}
        for position, gene in enumerate(space.genes):
            if gene.is_number:
                values = [gene.value(one.point[position]) for one in good if one.point]
                found[space.name(position)] = gene.spelled(min(values)), gene.spelled(max(values))
        return found


def _hypervolume(found: Sequence[Judged], goals: int) -> float | None:
    if goals != 2:
        return None
    costs = [None if one.value.mean is None else one.goal.sign * one.value.mean for one in found]
    pairs = [
        (one, (first, second))
        for one, first, second in zip(found[::2], costs[::2], costs[1::2], strict=True)
        if first is not None and second is not None
    ]
    tuned = [pair for one, pair in pairs if not one.is_default]
    if not tuned:
        return None
    return hypervolume(tuned, [max(column) for column in zip(*(p for _, p in pairs), strict=True)])


def _verdict(found: Sequence[Judged], relevant: float) -> tuple[str, list[str]]:
    """The answer in one sentence, and what to bear in mind."""
    default = next((one for one in found if one.is_default), None)
    best = next(one for one in found if not one.is_default)
    name, warnings = shown(best.keys), []
    if not best.keeps_bounds:
        warnings.append(f"{name} does not keep the bounds on fresh seeds")
    settings = {shown(one.keys) for one in found if not one.is_default}
    if any(one.goal is not best.goal for one in found):
        return f"{len(settings)} settings that none of the others beats", warnings
    if default is None:
        return f"Best: {name}. The default cannot run, so nothing is compared with it", warnings
    if not default.keeps_bounds and best.keeps_bounds:
        return f"Best: {name}. The default does not keep the bounds", warnings
    least = relevant * abs(default.value.mean or 0.0)
    if not _is_better(best, best.difference, best.adjusted_p, least):
        return "No better than the default", warnings
    elsewhere = best.held_out
    if elsewhere is not None and not _is_better(best, elsewhere, elsewhere.p_value, 0.0):
        warnings.append("it does not carry over: it is no better on the held-out networks")
    return f"Best: {name}", warnings


def _is_better(
    one: Judged, difference: Difference | None, p_value: float | None, least: float
) -> bool:
    if difference is None or difference.estimate.mean is None or p_value is None:
        return False
    return p_value < _LEVEL and -one.goal.sign * difference.estimate.mean > least


def rows(tuned: Tuned) -> Iterator[dict[str, Any]]:
    """The finalists for JSON."""
    for one in tuned.finalists:
        yield {
            "keys": dict(one.keys),
            "is_default": one.is_default,
            "goal": one.goal.expression.text,
            "direction": "minimise" if one.goal.sign > 0 else "maximise",
            "value": one.value.as_json(),
            "difference": one.difference.estimate.as_json() if one.difference else None,
            "adjusted_p_value": one.adjusted_p,
            "held_out_difference": one.held_out.estimate.as_json() if one.held_out else None,
            "search_mean": one.searched,
            "keeps_bounds": one.keeps_bounds,
        }
