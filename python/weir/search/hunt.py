"""`weir search`: the network where a stack does worst, shrunk to what matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Annotated

from weir import _native
from weir.base.errors import InputError
from weir.running.execution import Execution
from weir.search.engine import Evolution
from weir.search.findings import JUDGES, Finding, Target, as_json
from weir.search.loop import BUDGET, FRESH, Loop, Question, Tell, opened
from weir.search.shrink import Shrinker
from weir.search.space import Keys, Point, option
from weir.statistics.intervals import mean_interval

_BATCH = 16
_MOST_CHECKS = 150
_MORE_JUDGES = 20
_AGREED = 0.9
"""Share of the judges that agree; of five, all."""
_FIRST_JUDGE = 1000
"""What is added to a seed for the first judge's."""
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
    seed: Annotated[int, option("Random seed.", min=0)] = 1
    stop: Annotated[bool, option("End a search as soon as the failure is found.")] = True
    shrink: Annotated[bool, option("Leave out of the scenario what the failure does not need.")] = (
        True
    )
    random: Annotated[bool, option("Draw every network at random, to compare the search with.")] = (
        False
    )


def search(
    target: Target, options: SearchOptions, how: Execution, tell: Tell = lambda _: None
) -> Finding:
    """Looks for the worst network, shrinks it, and measures it on fresh seeds.

    Raises:
        InputError, ScenarioError: a key is not valid, or no network can run.
    """
    goal, measures = target.goal, [target.goal.expression.value]
    identity = {
        "goal": [goal.name, goal.expression.text, goal.sign, goal.threshold],
        "space": [(one.key, one.template) for one in target.space.keys],
        "options": repr(options),
    }
    with opened("search", identity, target.sources, measures, options.budget, how) as loop:
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
    is_judged: bool = False
    """Whether it was tried if the failure shows on other seeds too."""


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

    def run(self, tell: Tell) -> None:
        """Asks, runs, tells, until the budget is spent or the failure is found."""
        last = None
        while not self.loop.is_spent:
            points = self._engine.ask(_BATCH)
            batch = [self._network(point) for point in points]
            new = [one for one in dict.fromkeys(batch) if one.value is None]
            values = self._values([one.keys for one in new], self.options.seed, 1)
            for one, (value,) in zip(new, values, strict=True):
                one.value = value
            worst = self._worst(1)
            if not worst:
                if len(self.networks) > 4 * _BATCH:
                    raise InputError(f"no network can run; the first: {self._reason()}")
                continue
            self._engine.tell(points, [self.target.score(one.value) for one in batch])
            best = worst[0]
            if best is not last:
                last = best
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
        values = map(_middle, self._judge([one.keys for one in worst]))
        scored = [(s, n) for n, v in enumerate(values) if (s := self.target.score(v)) is not None]
        score, number = min(scored) if scored else (None, 0)
        times = self._times()
        keys = {**times, **worst[number].keys}
        needed = self._needed(score)
        for judges in (JUDGES, _MORE_JUDGES):
            fails = partial(self._fails, needed=needed, judges=judges)
            shrinker = Shrinker(fails, _MOST_CHECKS if self.options.shrink else 0)
            small = shrinker.shrink(keys)
            tell(f"shrunk from {len(keys)} to {len(small)} keys in {shrinker.checks} checks")
            (fresh,) = self._values([small], self.options.seed + FRESH, _FRESH_SEEDS)
            shown_in = sum(map(self.target.is_found, fresh))
            is_found = shown_in >= _MOSTLY * _FRESH_SEEDS
            # Few judges may agree by chance: then more of them decide.
            if needed is not None or is_found:
                break
        without = {
            key: self._median({k: v for k, v in small.items() if k != key})
            for key in small
            if key not in times
        }
        return Finding(
            self.target,
            small,
            keys,
            mean_interval(fresh),
            shown_in,
            _FRESH_SEEDS,
            is_found,
            self.runs,
            self.found_after,
            without,
            str(self.loop.journal.path),
        )

    def _network(self, point: Point) -> _Network:
        keys = self.target.space.at(point)
        return self.networks.setdefault(repr(keys), _Network(point, keys))

    def _worst(self, count: int) -> list[_Network]:
        networks = self.networks.values()
        scores = {n: s for n in networks if (s := self.target.score(n.value)) is not None}
        return sorted(scores, key=scores.__getitem__)[:count]

    def _values(self, networks: Sequence[Keys], first: int, seeds: int) -> list[list[float | None]]:
        """The values of networks on some seeds from the first one on, in one batch."""
        questions = [Question(keys, first + n) for keys in networks for n in range(seeds)]
        values = [answer.value for answer in self.loop.answers(questions)]
        return [values[n : n + seeds] for n in range(0, len(values), seeds)]

    def _judge(self, networks: Sequence[Keys], judges: int = JUDGES) -> list[list[float | None]]:
        return self._values(networks, self.options.seed + _FIRST_JUDGE, judges)

    def _median(self, keys: Keys) -> float | None:
        return _middle(self._judge([keys])[0])

    def _is_confirmed(self, best: _Network) -> bool:
        """Whether the failure shows on other seeds too; each network is tried once."""
        if best.is_judged or not self.target.is_found(best.value):
            return False
        best.is_judged = True
        # Few judges first, as most networks fail before them.
        if all(self._fails(best.keys, None, judges) for judges in (JUDGES, _MORE_JUDGES)):
            return True
        # Only one seed showed it. It must not hide the others, nor have children for it.
        best.value = self._median(best.keys)
        self._engine.tell([best.point], [self.target.score(best.value)])
        return False

    def _fails(self, keys: Keys, needed: float | None, judges: int) -> bool:
        """Whether judges see the failure, or in the median a score not better than `needed`."""
        (values,) = self._judge([keys], judges)
        if needed is None:
            return sum(map(self.target.is_found, values)) >= _AGREED * judges
        score = self.target.score(_middle(values))
        return score is not None and score <= needed

    def _needed(self, score: float | None) -> float | None:
        """The score that a simpler scenario has to keep; None for the threshold."""
        threshold, sign = self.target.goal.threshold, self.target.goal.sign
        if score is None or (threshold is not None and score <= sign * threshold):
            return None
        return score * _KEPT if score < 0 else score / _KEPT

    def _times(self) -> dict[str, str]:
        """Duration and warm-up as keys to be shortened, unless the goal needs them as they are."""
        if self.target.goal.keeps_time:
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


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if len(known) == len(values) else None


def measured(
    target: Target, keys: Keys, seeds: int, how: Execution
) -> tuple[list[float | None], str]:
    """The value on one network on fresh seeds, and why it cannot run where it has none."""
    measures = [target.goal.expression.value]
    identity = {"goal": target.goal.name, "keys": dict(keys), "seeds": seeds}
    with opened("search", identity, target.sources, measures, "1", how) as loop:
        answers = loop.answers([Question(keys, FRESH + n) for n in range(seeds)])
        loop.journal.finish({"command": "measure", "values": [one.values for one in answers]})
    return [one.value for one in answers], next((one.error for one in answers if one.error), "")
