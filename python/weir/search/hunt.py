"""`weir search`: the network where a stack does worst, shrunk to what matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Annotated

from weir import _native
from weir.base.errors import InputError
from weir.base.options import MEASUREMENT, Option
from weir.running.execution import Execution
from weir.search.engine import Evolution
from weir.search.findings import JUDGES, Finding, Target, as_json
from weir.search.loop import BUDGET, FRESH, Budget, Loop, Question, Tell, opened
from weir.search.shrink import Shrinker
from weir.search.space import Keys, Point
from weir.statistics.intervals import mean_interval

_BATCH = 16
_SEEDS = 1
_MOST_CHECKS = 150
_MORE_JUDGES = 20
_AGREED = 0.9
"""Share of the judges that agree; of five, all."""
_CANDIDATES = 5
_FRESH_SEEDS = 20
_KEPT = 0.8
"""Share of a score that a simpler scenario keeps, where no threshold is passed."""
_MOSTLY = 0.8
"""Share of the seeds that has to show a failure."""


@dataclass(frozen=True)
class SearchOptions:
    """How long is searched, and how."""

    budget: Annotated[str, BUDGET] = "3000"
    seed: Annotated[int, Option("Random seed.", MEASUREMENT, min=0)] = 1
    stop: Annotated[bool, Option("End a search as soon as the failure is found.", MEASUREMENT)] = (
        True
    )
    shrink: Annotated[
        bool, Option("Leave out of the scenario what the failure does not need.", MEASUREMENT)
    ] = True
    random: Annotated[
        bool, Option("Draw every network at random, to compare the search with.", MEASUREMENT)
    ] = False


def search(
    target: Target, options: SearchOptions, how: Execution, tell: Tell = lambda _: None
) -> Finding:
    """Looks for the worst network, shrinks it, and measures it on fresh seeds.

    Raises:
        InputError, ScenarioError: a key is not valid, or no network can run.
    """
    budget = Budget.parse(options.budget)
    sources = [target.source, *([target.reference] if target.reference else [])]
    identity = {
        "goal": [target.name, target.expression.text, target.sign, target.threshold],
        "space": [(one.key, one.template) for one in target.space.keys],
        "options": repr(options),
    }
    with opened("search", identity, sources, [target.expression.value], budget, how) as loop:
        hunt = _Search(loop, target, options)
        hunt.run(tell)
        finding = hunt.judged(tell)
        loop.journal.finish({"command": "search", **as_json(finding)})
    return finding


@dataclass(eq=False)
class _Network:
    point: Point
    keys: Keys
    value: float | None = None


class _Search:
    """The networks of one search."""

    def __init__(self, loop: Loop, target: Target, options: SearchOptions) -> None:
        self.loop, self.target, self.options = loop, target, options
        self.networks: dict[str, _Network] = {}
        self.found: _Network | None = None
        self.found_after: int | None = None
        self.runs = 0
        share = 1.0 if options.random else Evolution.share_new
        self._engine = Evolution(target.space.genes, options.seed, share)
        self._confirmed: set[str] = set()

    def run(self, tell: Tell) -> None:
        """Asks, runs, tells, until the budget is spent or the failure is found."""
        last = ""
        while not self.loop.is_spent:
            points = self._engine.ask(_BATCH)
            batch = [self._network(point) for point in points]
            new = [one for one in dict.fromkeys(batch) if one.value is None]
            for one, value in zip(new, self._values(new, self._seeds(_SEEDS)), strict=True):
                one.value = value
            if not self.networks or all(one.value is None for one in self.networks.values()):
                if len(self.networks) > 4 * _BATCH:
                    raise InputError(f"no network can run; the first: {self._reason()}")
                continue
            self._engine.tell(points, [self.target.score(one.value) for one in batch])
            best = self._worst(1)[0]
            name = repr(sorted(best.keys.items()))
            if name != last:
                last = name
                words = " ".join(f"--set '{k}={v}'" for k, v in best.keys.items())
                tell(f"{self.loop.runs} runs, {best.value:.4g}: {words}")
            if self.found_after is None and self._is_confirmed(best):
                self.found, self.found_after = best, self.loop.runs
                if self.options.stop:
                    break
        self.runs = self.loop.runs

    def judged(self, tell: Tell) -> Finding:
        """Shrinks the worst network, and measures it on fresh seeds."""
        confirmed = self.found if self.options.stop else None
        worst = [confirmed] if confirmed is not None else self._worst(_CANDIDATES)
        if not worst:
            raise InputError(f"no network has a value; the first: {self._reason()}")
        values = self._values(worst, self._judges(JUDGES))
        scored = [(s, n) for n, v in enumerate(values) if (s := self.target.score(v)) is not None]
        score, number = min(scored) if scored else (None, 0)
        keys = {**self._times(), **worst[number].keys}
        needed = self._needed(score)
        checks = 0
        for judges in (JUDGES, _MORE_JUDGES):
            fails = partial(self._fails, needed=needed, judges=judges)
            shrinker = Shrinker(fails, _MOST_CHECKS if self.options.shrink else 0)
            small = shrinker.shrink(keys)
            checks += shrinker.checks
            tell(f"shrunk from {len(keys)} to {len(small)} keys in {shrinker.checks} checks")
            fresh = self._fresh(small)
            shown_in = sum(map(self.target.is_found, fresh))
            # Few judges may agree by chance: then more of them decide.
            if needed is not None or shown_in >= _MOSTLY * _FRESH_SEEDS:
                break
        own = [key for key in small if key not in self._times()]
        return Finding(
            self.target,
            small,
            keys,
            mean_interval(fresh),
            shown_in,
            _FRESH_SEEDS,
            shown_in >= _MOSTLY * _FRESH_SEEDS,
            self.runs,
            self.found_after,
            checks,
            {key: self._median({k: v for k, v in small.items() if k != key}) for key in own},
            self.loop.scenario(small).stacks,
            str(self.loop.journal.path),
        )

    def _fresh(self, keys: Keys) -> list[float | None]:
        first = self.options.seed + FRESH
        questions = [Question(keys, first + n) for n in range(_FRESH_SEEDS)]
        return [a.values[0] if a.values else None for a in self.loop.answers(questions)]

    def _network(self, point: Point) -> _Network:
        keys = self.target.space.at(point)
        return self.networks.setdefault(repr(sorted(keys.items())), _Network(point, keys))

    def _worst(self, count: int) -> list[_Network]:
        known = [
            (s, n, one)
            for n, one in enumerate(self.networks.values())
            if (s := self.target.score(one.value)) is not None
        ]
        return [one for *_, one in sorted(known, key=lambda entry: entry[:2])[:count]]

    def _seeds(self, count: int) -> list[int]:
        return [self.options.seed + n for n in range(count)]

    def _judges(self, count: int) -> list[int]:
        return [self.options.seed + 1000 + n for n in range(count)]

    def _values(self, networks: Sequence[_Network], seeds: Sequence[int]) -> list[float | None]:
        questions = [Question(one.keys, seed) for one in networks for seed in seeds]
        answers = iter(self.loop.answers(questions))
        return [_middle([next(answers).values for _ in seeds]) for _ in networks]

    def _median(self, keys: Keys) -> float | None:
        questions = [Question(keys, seed) for seed in self._judges(JUDGES)]
        return _middle([answer.values for answer in self.loop.answers(questions)])

    def _is_confirmed(self, best: _Network) -> bool:
        """Whether the failure shows on other seeds too; each network is tried once."""
        name = repr(sorted(best.keys.items()))
        if not self.target.is_found(best.value) or name in self._confirmed:
            return False
        self._confirmed.add(name)
        # Few judges first, as most networks fail before them.
        if all(self._fails(best.keys, None, judges) for judges in (JUDGES, _MORE_JUDGES)):
            return True
        # Only one seed showed it. It must not hide the others, nor have children for it.
        best.value = self._median(best.keys)
        self._engine.tell([best.point], [self.target.score(best.value)])
        return False

    def _fails(self, keys: Keys, needed: float | None, judges: int = JUDGES) -> bool:
        """Whether judges see the failure, or in the median a score not better than `needed`."""
        questions = [Question(keys, seed) for seed in self._judges(judges)]
        values = [a.values[0] if a.values else None for a in self.loop.answers(questions)]
        if needed is None:
            return sum(map(self.target.is_found, values)) >= _AGREED * judges
        scores = [self.target.score(value) for value in values]
        return all(s is not None for s in scores) and median(s or 0.0 for s in scores) <= needed

    def _needed(self, score: float | None) -> float | None:
        """The score that a simpler scenario has to keep; None for the threshold."""
        threshold = self.target.threshold
        if score is None or (threshold is not None and score <= self.target.sign * threshold):
            return None
        return score * _KEPT if score < 0 else score / _KEPT

    def _times(self) -> dict[str, str]:
        """Duration and warm-up as keys to be shortened, unless the goal needs them as they are."""
        if self.target.keeps_time:
            return {}
        measure = self.target.source.effective().fields["measure"]
        found = {}
        for name in ("duration", "warmup"):
            seconds = _native.parse_quantity("time", str(measure[name]))
            if seconds > 0:
                found[f"measure.{name}"] = f"{seconds:g}s"
        return found

    def _reason(self) -> str:
        return next(iter(self.loop.refused.values()), "it has no value in any run")


def _middle(values: Sequence[Sequence[float | None]]) -> float | None:
    known = [one[0] for one in values if one and one[0] is not None]
    return median(known) if len(known) == len(values) else None


def measured(
    target: Target, keys: Keys, seeds: int, how: Execution
) -> tuple[list[float | None], str]:
    """The value on one network on fresh seeds, and why it cannot run where it has none."""
    budget = Budget(runs=1, seconds=None)
    sources = [target.source, *([target.reference] if target.reference else [])]
    identity = {"goal": target.name, "keys": dict(keys), "seeds": seeds}
    with opened("search", identity, sources, [target.expression.value], budget, how) as loop:
        answers = loop.answers([Question(keys, FRESH + n) for n in range(seeds)])
        loop.journal.finish({"command": "measure", "values": [one.values for one in answers]})
    reason = next((one.error for one in answers if one.error), "")
    return [one.values[0] if one.values else None for one in answers], reason
