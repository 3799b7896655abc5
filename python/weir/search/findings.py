"""What a search looks for, what it found, and the texts that keep it."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weir.base.errors import InputError
from weir.kernel import receiver
from weir.scenario.source import SIM, Effective, Overrides, Source
from weir.scenario.toml import toml
from weir.search import space as spaces
from weir.search.goals import Weakness
from weir.search.loop import shown
from weir.search.space import Keys, Space, Templates
from weir.statistics.intervals import Estimate

JUDGES = 5
"""Seeds that decide whether a network shows a failure."""


@dataclass(frozen=True)
class Target:
    """What a search looks for: the scenario, its space, and a score."""

    goal: Weakness
    source: Source
    space: Space
    reference: Source | None = None

    @classmethod
    def of(
        cls,
        goal: Weakness,
        keys: Templates,
        sets: Overrides,
        world: str,
        scenario: Source | None = None,
    ) -> Target:
        """The target of a named goal. `keys` and `scenario` replace those of the goal.

        Raises:
            InputError: it compares worlds, and `world` is not the simulator.
        """
        if goal.old_world and world != SIM:
            raise InputError(f"{goal.name} runs each network in both worlds; leave out --world")
        stated = {key for key, _ in sets}
        own = {k: v for k, v in goal.space.items() if k.removesuffix("?") not in stated}
        source = replace(goal.scenario, overrides=sets)
        if scenario is not None:
            number = len(scenario.effective().fields["flow"])
            stacks = zip(range(number), (goal.stack, goal.against), strict=False)
            own_stacks = tuple((f"flow.{n}.stack", stack) for n, stack in stacks if stack)
            source = replace(scenario, overrides=(*own_stacks, *scenario.overrides, *sets))
        source = source.in_world(world)
        reference = None
        if goal.old:
            old = source.with_override("flow.0.stack", goal.old)
            reference = old.in_world(goal.old_world or world)
        if goal.old_world:
            flows = range(len(source.effective().fields["flow"]))
            hosts = receiver.hosts_of_guest().items()
            own_hosts = tuple((f"flow.{n}.{key}", value) for n in flows for key, value in hosts)
            source = replace(source, overrides=(*own_hosts, *source.overrides))
        return cls(goal, source, spaces.space(keys or own), reference)

    def score(self, value: float | None) -> float | None:
        """A value as a cost: less is worse for the stack."""
        return None if value is None else self.goal.sign * value

    @property
    def sources(self) -> list[Source]:
        """The scenario, and the reference's."""
        return [self.source] if self.reference is None else [self.source, self.reference]

    @property
    def crosses_worlds(self) -> bool:
        """Whether one network is compared in two worlds."""
        return self.reference is not None and self.reference.world != self.source.world

    def is_found(self, value: float | None) -> bool:
        """Whether a value is beyond the threshold."""
        if value is None or self.goal.threshold is None:
            return False
        return self.goal.sign * (value - self.goal.threshold) <= 0


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
    without: Mapping[str, float | None]
    """The value with each key at its default: those that matter change it."""
    journal: str

    def scenario(self, source: Source | None = None) -> Effective:
        """The network, also with the reference as its source."""
        return (source or self.target.source).at(self.keys, list(self.keys.values()))

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        goal, text = self.target.goal, self.target.goal.expression.text
        if self.value.mean is None:
            return f"{goal.name}: nothing was found; no network has a value of {text}"
        value = f"{text} is {self.value.mean:.3g} with {shown(self.keys)}"
        if goal.threshold is None:
            return f"{goal.about} in {self.runs} runs: {value}"
        many = f"{self.shown} of {self.seeds} seeds"
        if self.is_found:
            runs = self.runs if self.runs_until_found is None else self.runs_until_found
            return f"{goal.name}: found after {runs} runs, in {many}: {value}"
        none = f"{goal.name}: not found in {self.runs} runs"
        return f"{none}; the worst, beyond {goal.threshold:g} in {many}: {value}"


def scenario_text(finding: Finding, source: Source | None = None) -> str:
    """The scenario file: the goal's scenario with the keys that matter, or that of a reference."""
    source = source or finding.target.source
    data = tomllib.loads(source.text)
    for key, value in (*source.overrides, *finding.keys.items()):
        _set(data, key.split("."), value)
    data["name"] = f"{finding.target.goal.name}-found"
    text = f"# {finding.sentence}\n" + toml(data)
    wanted = finding.scenario(source).fields
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
    goal, old = finding.target.goal, finding.target.reference
    stack = "" if old is None else f'stack = "{dict(old.overrides)["flow.0.stack"]}"'
    return _SUITE.format(
        command=command,
        goal=goal.name,
        title=json.dumps(f"Found by weir search: {goal.about}", ensure_ascii=False),
        stack=json.dumps(finding.scenario().stacks[0]),
        scenario=scenario_text(finding),
        about=json.dumps(goal.about, ensure_ascii=False),
        seeds=JUDGES,
        variants="" if old is None else f"[case.variant.now]\n[case.variant.old]\n{stack}",
        expression=json.dumps(goal.expression.text),
        side="low" if goal.sign > 0 else "high",
        limit=goal.threshold if goal.threshold is not None else finding.value.mean,
        sentence=json.dumps(finding.sentence, ensure_ascii=False),
        against="" if old is None else 'of = "now"\nagainst = ["old"]',
    )


def as_json(finding: Finding) -> dict[str, Any]:
    """The finding for JSON."""
    goal = finding.target.goal
    return {
        "goal": goal.name,
        "expression": goal.expression.text,
        "direction": "minimise" if goal.sign > 0 else "maximise",
        "threshold": goal.threshold,
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
            if isinstance(inner.get(name), str):  # a queue's size becomes its limit
                inner[name] = {"limit": inner[name]}
            inner = inner.setdefault(name, {})
    inner[path[-1]] = _value(value)


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def lines_of(finding: Finding) -> Iterator[str]:
    """What was found, and what of the network matters, key by key."""
    yield f"{finding.sentence}."
    for key, value in finding.without.items():
        shown = "no value" if value is None else f"{value:.3g}"
        yield f"Without {key}={finding.keys[key]}: {shown}"
