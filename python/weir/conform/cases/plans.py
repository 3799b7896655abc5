"""The runs of a call: cases times stacks, before any of them starts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated

from weir import _native
from weir.base.errors import InputError
from weir.base.options import MEASUREMENT, Option
from weir.conform.cases import scripts, stacks, suites, triggers
from weir.conform.cases.model import Case, Suite, Variant
from weir.scenario.labels import Named, checked, named
from weir.scenario.plans import World, runs_per_case, world_words
from weir.scenario.source import GUESTS, KERNEL, SIM, Effective, Source
from weir.scenario.sweep import Plan, plan

NAME = "conform"
_LARGE = 'recv_buffer = "512mib"'
"""What keeps receivers from limiting a sender in the simulator."""
_UNSET = "64mib"
"""The default, with which world `kernel` leaves a receive buffer to the kernel."""


@dataclass(frozen=True)
class Request:
    """What a caller asks for."""

    suites: Sequence[str] = ()
    """Names of suites; all if empty."""
    stacks: Annotated[
        Sequence[str],
        Option(
            "Stacks to judge; may be repeated.",
            MEASUREMENT,
            metavar="STACK,...",
            default_text="those of each suite",
            flag="--stack",
        ),
    ] = ()
    cases: Annotated[
        Sequence[str],
        Option(
            "Only cases with matching ids; may be repeated.",
            MEASUREMENT,
            metavar="GLOB",
            default_text="all",
            flag="--case",
        ),
    ] = ()
    world: World = SIM
    repeat: Annotated[int | None, runs_per_case("the case's own")] = None
    seed: Annotated[int, Option("Random seed of the first run.", MEASUREMENT, min=0)] = 1

    def command(self) -> str:
        """The command line that repeats it."""
        words = ["weir", NAME, *self.suites]
        words += [word for stack in self.stacks for word in ("--stack", stack)]
        words += [word for glob in self.cases for word in ("--case", glob)]
        words += [] if self.repeat is None else ["--repeat", str(self.repeat)]
        return shlex.join([*words, "--seed", str(self.seed), *world_words(self.world)])


@dataclass(frozen=True)
class Subject:
    """A case with one stack: the labels of its runs, or why there are none."""

    case: Case
    name: str
    """The stack, or its label."""
    stack: str
    labels: Mapping[str, str] = field(default_factory=dict)
    """The label of each variant's runs."""
    reason: str = ""
    """Why the case is not applicable; empty if it is."""

    @property
    def is_script(self) -> bool:
        """Whether a packet script runs for it."""
        return bool(self.case.script) and not self.reason


@dataclass(frozen=True)
class Planned:
    """All subjects, and the plan of their runs; no plan if nothing can run."""

    subjects: Sequence[Subject]
    plan: Plan | None
    world: str = SIM
    has_own_seeds: bool = True
    """Whether the seeds are those of the suites, for which they list known failures."""


def planned(request: Request) -> Planned:
    """The runs that a request needs.

    Raises:
        InputError, ScenarioError: a suite, a stack or a pattern is not valid.
    """
    chosen = [suites.find(name) for name in request.suites] or list(suites.suites().values())
    for name in request.suites:
        if list(request.suites).count(name) > 1:
            raise InputError(f"suite {name} is given twice")
    given = checked(request.stacks, request.world)
    pairs = [
        (case, stack)
        for suite in chosen
        for case in _matching(suite, request.cases)
        for stack in given or map(named, case.stacks or suite.stacks)
    ]
    if not pairs:
        known = ", ".join(case.id for suite in chosen for case in suite.cases)
        raise InputError(f"--case {' '.join(request.cases)}: no such case; there are: {known}")
    sources: dict[str, Source] = {}
    effective: dict[str, Effective] = {}
    subjects = [_subject(pair, request, sources, effective) for pair in pairs]
    if not sources:
        if not any(subject.is_script for subject in subjects):
            raise InputError(f"no case applies; the first: {subjects[0].reason}")
        return Planned(subjects, None, request.world)
    whole = plan(NAME, request.command(), sources, {}, effective)
    has_own_seeds = request.repeat is None and request.seed == Request.seed
    return Planned(subjects, whole, request.world, has_own_seeds)


def _matching(suite: Suite, patterns: Sequence[str]) -> list[Case]:
    return [
        case
        for case in suite.cases
        if not patterns or any(fnmatchcase(case.id, pattern) for pattern in patterns)
    ]


def _subject(
    pair: tuple[Case, Named],
    request: Request,
    sources: dict[str, Source],
    effective: dict[str, Effective],
) -> Subject:
    """Adds the sources of a case with a stack, if both fit."""
    case, stack, name = pair[0], pair[1].stack, pair[1].name
    reason = stacks.concerns(case, stack, is_named=bool(request.suites))
    if case.script:
        reason = reason or scripts.why_not_applicable(case, stack, request.world)
    if reason or case.script:
        return Subject(case, name, stack, reason=reason)
    own, known, labels = {}, {}, {}
    try:
        for variant in case.variants.values():
            label = _label(case, variant, name)
            source = _source(case, variant, stack, request)
            known[label] = source.effective()
            source.at({}, base=known[label])
            own[label], labels[variant.name] = source, label
    except (_native.ScenarioError, InputError, triggers.NoTriggerError) as error:
        return Subject(case, name, stack, reason=str(error))
    sources.update(own)
    effective.update(known)
    return Subject(case, name, stack, labels)


def _label(case: Case, variant: Variant, stack: str) -> str:
    name = f" {variant.name}" if variant.name else ""
    return f"{case.suite} {case.id}{name}, {variant.stack or stack}"


def _source(case: Case, variant: Variant, stack: str, request: Request) -> Source:
    repeat = request.repeat if request.repeat is not None and not case.trigger else case.seeds
    seeds = (("measure.repeat", str(repeat)), ("measure.seed", str(request.seed)))
    name = variant.stack or stack
    keys = tuple((key, text.replace("{stack}", name)) for key, text in variant.keys)
    source = Source(variant.text, f"{case.suite} {case.id}", (*keys, *seeds))
    if request.world in (KERNEL, *GUESTS) and _LARGE in variant.text:
        # `SO_RCVBUF` stops at `net.core.rmem_max`. A buffer that is not set grows to 32 MiB.
        source = source.with_override("flow.*.recv_buffer", _UNSET)
    source = source.in_world(request.world)
    return triggers.placed(source, case.trigger) if case.trigger else source
