"""`weir search`: the network where a stack does worst, shrunk to what matters."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Annotated, Any

from weir import _native
from weir.base.errors import InputError
from weir.base.options import MEASUREMENT, Option
from weir.running.execution import Execution
from weir.scenario.source import SIM, Overrides, Source
from weir.scenario.toml import toml
from weir.search import space as spaces
from weir.search.engine import Evolution
from weir.search.expressions import Expression
from weir.search.goals import Hunt
from weir.search.loop import BUDGET, FRESH, Budget, Loop, Question, Tell, opened, shown
from weir.search.shrink import Shrinker
from weir.search.space import Keys, Point, Space
from weir.statistics.intervals import Estimate, mean_interval

_BATCH = 16
_SEEDS = 1
_MOST_CHECKS = 150
_JUDGES = 5
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


@dataclass(frozen=True)
class Target:
    """What a search looks for: the scenario, its space, and a score."""

    name: str
    about: str
    source: Source
    space: Space
    expression: Expression
    sign: int
    threshold: float | None
    reference: Source | None = None

    @classmethod
    def of(
        cls,
        hunt: Hunt,
        keys: Mapping[str, str | Sequence[str]],
        sets: Overrides,
        world: str,
        scenario: Source | None = None,
    ) -> Target:
        """The target of a named goal. `keys` and `scenario` replace those of the goal."""
        goal = hunt.goal
        stated = {key for key, _ in sets}
        own = {k: v for k, v in goal.space.items() if k.removesuffix("?") not in stated}
        source = Source(hunt.filled(goal.scenario), goal.name, sets)
        if scenario is not None:
            flows = scenario.effective().fields["flow"]
            stacks = zip(range(len(flows)), (hunt.stack, hunt.against), strict=False)
            own_stacks = tuple((f"flow.{n}.stack", stack) for n, stack in stacks if stack)
            source = replace(scenario, overrides=(*own_stacks, *scenario.overrides, *sets))
        source = source.in_world(world)
        reference = None
        if goal.old:
            keys_of_old = (*source.overrides, ("flow.0.stack", hunt.filled(goal.old)))
            other = goal.old_world or world
            reference = replace(source, overrides=keys_of_old, world=SIM).in_world(other)
        return cls(
            goal.name,
            hunt.filled(goal.about),
            source,
            spaces.space(keys or own),
            Expression.parse(goal.expression),
            goal.sign,
            goal.threshold,
            reference,
        )

    def score(self, value: float | None) -> float | None:
        """A value as a cost: less is worse for the stack."""
        return None if value is None else self.sign * value

    def is_found(self, value: float | None) -> bool:
        """Whether a value is beyond the threshold."""
        if value is None or self.threshold is None:
            return False
        return self.sign * (value - self.threshold) <= 0


@dataclass(frozen=True)
class Finding:
    """The worst network, and what of it matters."""

    target: Target
    keys: Keys
    """After shrinking."""
    before: Keys
    value: Estimate
    """On fresh seeds."""
    shown: int
    """On how many of them it is beyond the threshold."""
    seeds: int
    is_found: bool
    runs: int
    """Runs of the search itself."""
    runs_until_found: int | None
    checks: int
    without: Mapping[str, float | None]
    """The value with each key at its default: those that matter change it."""
    stacks: Sequence[str]
    journal: str

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        text = self.target.expression.text
        if self.value.mean is None:
            return f"{self.target.name}: nothing was found; no network has a value of {text}"
        value = f"{text} is {self.value.mean:.3g} with {shown(self.keys)}"
        if self.target.threshold is None:
            return f"{self.target.about} in {self.runs} runs: {value}"
        many = f"{self.shown} of {self.seeds} seeds"
        if self.is_found:
            runs = self.runs if self.runs_until_found is None else self.runs_until_found
            return f"{self.target.name}: found after {runs} runs, in {many}: {value}"
        none = f"{self.target.name}: not found in {self.runs} runs"
        limit = f"beyond {self.target.threshold:g} in {many}"
        return f"{none}; the worst, {limit}: {value}"


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
                self.found_after = self.loop.runs
                if self.options.stop:
                    break
        self.runs = self.loop.runs

    def judged(self, tell: Tell) -> Finding:
        """Shrinks the worst network, and measures it on fresh seeds."""
        worst = self._worst(_CANDIDATES)
        if not worst:
            raise InputError(f"no network has a value; the first: {self._reason()}")
        values = self._values(worst, self._judges(_JUDGES))
        scored = [(s, n) for n, v in enumerate(values) if (s := self.target.score(v)) is not None]
        score, number = min(scored) if scored else (None, 0)
        keys = {**self._times(), **worst[number].keys}
        needed = self._needed(score)
        checks = 0
        for judges in (_JUDGES, _MORE_JUDGES):
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
        questions = [Question(keys, seed) for seed in self._judges(_JUDGES)]
        return _middle([answer.values for answer in self.loop.answers(questions)])

    def _is_confirmed(self, best: _Network) -> bool:
        """Whether the failure shows on other seeds too; each network is tried once."""
        name = repr(sorted(best.keys.items()))
        if not self.target.is_found(best.value) or name in self._confirmed:
            return False
        self._confirmed.add(name)
        return self._fails(best.keys, None)

    def _fails(self, keys: Keys, needed: float | None, judges: int = _JUDGES) -> bool:
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
        """Duration and warm-up as keys, so that they can be shortened."""
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


def scenario_text(finding: Finding) -> str:
    """The scenario file: the goal's scenario with the keys that matter."""
    source, keys = finding.target.source, finding.keys
    data = tomllib.loads(source.text)
    for key, value in (*source.overrides, *keys.items()):
        _set(data, key.split("."), value)
    data["name"] = f"{finding.target.name}-found"
    text = f"# {finding.sentence}\n" + toml(data)
    wanted = source.at(keys, list(keys.values())).fields
    own = Source(text, "found").effective().fields
    if any(own[part] != wanted[part] for part in ("topology", "flow", "measure")):
        return toml({**wanted, "name": data["name"]})  # a key that only an override can write
    return text


_SUITE = """# Written by: {command}
name = "found-{goal}"
title = {title}
source = "weir search"
stacks = [{stack}]
[scenarios]
found = '''
{scenario}'''
[[case]]
id = "{goal}"
title = {about}
procedure = "The network that a search found, shrunk."
scenario = "found"
seeds = {seeds}
{variants}
[[case.check]]
name = "not {goal}"
measure = "expression"
with = {{ text = {expression} }}
{side} = {limit}
join = "median"
ours = true
origin = {sentence}
{against}
"""


def conform_text(finding: Finding, command: str) -> str:
    """A suite of `weir conform` with one case: the failure does not show."""
    target, old = finding.target, finding.target.reference
    stack = "" if old is None else f'stack = "{dict(old.overrides)["flow.0.stack"]}"'
    return _SUITE.format(
        command=command,
        goal=target.name,
        title=json.dumps(f"Found by weir search: {target.about}", ensure_ascii=False),
        stack=json.dumps(finding.stacks[0]),
        scenario=scenario_text(finding),
        about=json.dumps(target.about, ensure_ascii=False),
        seeds=_JUDGES,
        variants="" if old is None else f"[case.variant.now]\n[case.variant.old]\n{stack}",
        expression=json.dumps(target.expression.text),
        side="low" if target.sign > 0 else "high",
        limit=target.threshold if target.threshold is not None else finding.value.mean,
        sentence=json.dumps(finding.sentence, ensure_ascii=False),
        against="" if old is None else 'of = "now"\nagainst = ["old"]',
    )


def as_json(finding: Finding) -> dict[str, Any]:
    """The finding for JSON."""
    return {
        "goal": finding.target.name,
        "expression": finding.target.expression.text,
        "direction": "minimise" if finding.target.sign > 0 else "maximise",
        "threshold": finding.target.threshold,
        "found": finding.is_found,
        "value": finding.value.as_json(),
        "shown": [finding.shown, finding.seeds],
        "runs": finding.runs,
        "runs_until_found": finding.runs_until_found,
        "keys": dict(finding.keys),
        "keys_before": dict(finding.before),
        "without": dict(finding.without),
        "sentence": finding.sentence,
    }


def decisive(curves: Mapping[str, Sequence[tuple[float, float]]]) -> float | None:
    """From when on the flow that gets least has less than half of an equal share, for good.

    `curves` has the goodput of each flow over time.
    """
    means = {name: math.fsum(v for _, v in curve) for name, curve in curves.items() if curve}
    if not means:
        return None
    least = min(means, key=lambda name: means[name])
    since: float | None = None
    for index, (time_s, own) in enumerate(curves[least]):
        others = math.fsum(curve[index][1] for curve in curves.values() if index < len(curve))
        is_low = own < 0.5 * others / len(curves) if len(curves) > 1 else own <= 0
        since = (since if since is not None else time_s) if is_low else None
    return since


def _set(data: dict[str, Any], path: Sequence[str], value: str) -> None:
    inner: Any = data
    for name in path[:-1]:
        if isinstance(inner, list):
            inner = inner[int(name)]
        else:
            following = inner.get(name)
            if isinstance(following, str):  # a queue's size becomes its limit
                inner[name] = {"limit": following}
            inner = inner.setdefault(name, {})
    inner[path[-1]] = _value(value)


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def lines_of(finding: Finding) -> Iterator[str]:
    """What of the network matters, key by key."""
    for key, value in finding.without.items():
        shown = "no value" if value is None else f"{value:.3g}"
        yield f"Without {key}={finding.keys[key]}: {shown}"
