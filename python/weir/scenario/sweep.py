"""From scenarios to a plan: the complete list of runs, before any of them starts."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from weir import _native
from weir.base.errors import InputError
from weir.scenario.labels import Named, labels_of, named
from weir.scenario.source import GUESTS, SIM, Effective, Source, Sweep, is_stack

MAX_RUNS = 100_000
"""More runs than this are taken for a slip in a sweep."""


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario at one point of the sweep: what is repeated over seeds."""

    series: str
    """What all points of a sweep have in common: the name of a curve."""
    stack: str
    point: Mapping[str, str]
    scenario: Effective
    world: str = SIM
    hosts: str = ""
    """In world `hosts`: which these are, in a canonical form."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The stacks that have a label, by label, as they were written."""

    @property
    def label(self) -> str:
        """A name that no other case of the plan has."""
        return ", ".join([self.series, *(f"{key}={value}" for key, value in self.point.items())])


@dataclass(frozen=True, slots=True)
class Run:
    """One execution. `key` depends on everything that decides its result, and on nothing else."""

    index: int
    case: Case
    repeat: int
    seed: int
    key: str


@dataclass(frozen=True)
class Plan:
    """All runs of one command. The seeds of a repeat are the same in every case.

    A case is repeated as often as its scenario says, `repeat` times at most.
    """

    name: str
    command: str
    cases: tuple[Case, ...]
    repeat: int
    seed: int

    @property
    def is_real_time(self) -> bool:
        """Whether any run takes as long as what happens in it."""
        return any(case.world not in (SIM, *GUESTS) for case in self.cases)

    @property
    def needs_guests(self) -> bool:
        """Whether any run happens in a guest."""
        return any(case.world in GUESTS for case in self.cases)

    @property
    def swept(self) -> tuple[str, ...]:
        """The keys that differ between cases."""
        return tuple(dict.fromkeys(key for case in self.cases for key in case.point))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seed of each repeat."""
        return tuple(self.seed + repeat for repeat in range(self.repeat))

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Repeat by repeat, so that an interrupted plan has some of every case."""
        pairs = itertools.product(enumerate(self.seeds), self.cases)
        wanted = (pair for pair in pairs if pair[0][0] < pair[1].scenario.repeat)
        return tuple(
            run_of(case, seed, index, repeat) for index, ((repeat, seed), case) in enumerate(wanted)
        )

    @cached_property
    def digest(self) -> str:
        """Equal for two plans exactly when they consist of the same runs."""
        return _hash(run.key for run in self.runs)


def run_of(case: Case, seed: int, index: int, repeat: int = 0) -> Run:
    """The run of a case with a seed."""
    return Run(index, case, repeat, seed, _key(case, seed))


def plan(
    name: str,
    command: str,
    sources: Mapping[str, Source],
    sweep: Sweep,
    known: Mapping[str, Effective] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Plan:
    """Every source at every point of `sweep` and of its own `[sweep]` section.

    A key in `sweep` replaces the same key of the file. The first seed is the first source's. Where
    a single source sweeps stacks, these are what is compared: they name the series, and the rest
    of the point is where on the sweep they are compared. `known` is what `Source.effective`
    returned of sources, where it was called before. `labels` has the stacks of the sources that
    are named by labels. Stacks of a sweep may have labels of their own.

    Raises:
        ScenarioError: a scenario, or one of its points, is not valid.
        InputError: there is nothing to run, far too much, or a value is swept twice.
    """
    cases: list[Case] = []
    for series, source in sources.items():
        base = (known or {}).get(series) or source.effective()
        swept_keys, names = without_labels({**base.sweep, **sweep})
        own = {key: swept_keys[key] for key in sweep}
        trusted = [value for key, values in own.items() if is_stack(key) for value in values]
        _refuse_repeated(swept_keys)
        _refuse_too_many(math.prod(map(len, swept_keys.values())), swept_keys)
        for point in points(swept_keys):
            scenario = source.at(point, trusted, base)
            shown = {key: names[key][value].name for key, value in point.items() if key in names}
            shown = {**point, **shown}
            swept, place = _split(shown) if len(sources) == 1 else ("", shown)
            stacks = " + ".join(scenario.stacks)
            curve = swept or series
            written = labels_of(names[key][point[key]] for key in names)
            written |= {series: labels[series]} if labels and series in labels else {}
            cases.append(Case(curve, stacks, place, scenario, source.world, source.hosts, written))
            if len(cases) * scenario.repeat > MAX_RUNS:
                raise InputError(
                    f"this would make more than {MAX_RUNS} runs, the most of a command: each of "
                    f"{len(cases)} cases and more has {scenario.repeat} repeats"
                )
    repeat = max(case.scenario.repeat for case in cases)
    return Plan(name, command, tuple(cases), repeat, cases[0].scenario.seed)


def without_labels(sweep: Sweep) -> tuple[Sweep, dict[str, dict[str, Named]]]:
    """The sweep with plain stacks, and by key what each of these is called.

    Raises:
        InputError: a label is not valid, or names two stacks.
    """
    plain, names = dict(sweep), {}
    for key, values in sweep.items():
        if not is_stack(key):
            continue
        found = [named(value) for value in values]
        for one in found:
            if any(one.name == other.name and one.stack != other.stack for other in found):
                raise InputError(f"{key}={','.join(values)}: {one.name} names two stacks")
        plain[key] = tuple(one.stack for one in found)
        names[key] = {one.stack: one for one in found}
    return plain, names


def _refuse_repeated(sweep: Sweep) -> None:
    """A case is named after its values: two equal ones would be one case, with more weight."""
    for key, values in sweep.items():
        again = next((value for value in values if values.count(value) > 1), None)
        if again is not None:
            raise InputError(f"{key}={','.join(values)}: {again} is there twice")


def _refuse_too_many(count: int, sweep: Sweep) -> None:
    """Before any point is checked, which takes a while for each."""
    if count > MAX_RUNS:
        sizes = " × ".join(f"{len(values)} of {key}" for key, values in sweep.items())
        raise InputError(
            f"this would make at least {count} runs ({sizes}), and a command makes at most "
            f"{MAX_RUNS}; sweep fewer values"
        )


def points(sweep: Sweep) -> Iterator[dict[str, str]]:
    """The cross product of a sweep; a single empty point where nothing is swept."""
    for values in itertools.product(*sweep.values()):
        yield dict(zip(sweep, values, strict=True))


def _split(point: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The stacks that a point of a sweep names, and the rest of it."""
    stacks = [value for key, value in point.items() if is_stack(key)]
    rest = {key: value for key, value in point.items() if not is_stack(key)}
    return " + ".join(stacks), rest


def _key(case: Case, seed: int) -> str:
    world = [] if case.world == SIM else [case.world]
    world += [case.hosts] if case.hosts else []
    programs = _definitions(case.scenario)
    return _hash([_native.version(), case.scenario.text, str(seed), *world, *programs])


def _definitions(scenario: Effective) -> list[str]:
    """The texts of the definitions of contenders."""
    if not scenario.contenders:
        return []
    from weir.contenders import catalogue

    found = map(catalogue.of, scenario.contenders)
    return [contender.definition.text for contender in found if contender is not None]


def _hash(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]
