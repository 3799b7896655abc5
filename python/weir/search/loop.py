"""Questions and answers: scenarios with seeds in, one number per expression out.

A question is the keys of a scenario, a network of the sweep and a seed. Its answer is a pure
function of these in the simulator and in guests, so it does not matter which worker has it, in
which order, and whether it was there before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from weir import _native
from weir.base.errors import ClusterError, InputError, StoppedError
from weir.base.options import MEASUREMENT, Option
from weir.running.execution import Execution, workers
from weir.running.runner import each
from weir.scenario.source import Effective, Source
from weir.scenario.sweep import Case, Run, run_of
from weir.search.expressions import Observation, Value
from weir.search.journal import Answer, Journal
from weir.search.space import Keys

BUDGET = Option(
    "When the search ends: a number of runs as `2000`, or a time as `20min`.",
    MEASUREMENT,
    metavar="RUNS|TIME",
)
FRESH = 1_000_003
"""What is added to a seed so that it is none of the search's."""
Measure = Callable[[Observation], Value]
Tell = Callable[[str], None]
"""Receives a line about the progress."""


@dataclass(frozen=True)
class Question:
    """A scenario and a seed."""

    keys: Keys
    seed: int
    network: Keys = field(default_factory=dict)


@dataclass(frozen=True)
class Budget:
    """Runs, or seconds."""

    runs: int | None
    seconds: float | None

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Reads `2000` or `20min`.

        Raises:
            InputError: it is neither.
        """
        if text.isdecimal() and int(text) > 0:
            return cls(int(text), None)
        with suppress(ValueError):
            if (seconds := _native.parse_quantity("time", text)) > 0:
                return cls(None, seconds)
        raise InputError(
            f"--budget {text}: a number of runs as 2000, or a time as 20min, is needed"
        )


class Loop:
    """Answers questions from a journal, or by runs, until a budget is spent."""

    def __init__(
        self,
        sources: Sequence[Source],
        measures: Sequence[Measure],
        journal: Journal,
        budget: Budget,
        pool: Executor,
        jobs: int,
    ) -> None:
        self.journal = journal
        self.runs = 0
        """Different runs that were needed so far, also those in the journal."""
        self.refused: dict[str, str] = {}
        """Why scenarios are not valid."""
        self._bases = [(source, source.effective()) for source in sources]
        self._measures = measures
        self._budget = budget
        self._pool, self._jobs = pool, jobs
        self._started = time.monotonic()
        self._batches = 0
        self._elapsed = 0.0
        self._asked: set[str] = set()
        self._scenarios: dict[str, list[Effective] | None] = {}

    @property
    def is_spent(self) -> bool:
        """Whether the budget is used up."""
        if self._budget.runs is not None:
            return self.runs >= self._budget.runs
        return self._elapsed >= (self._budget.seconds or 0.0)

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """The answers of a batch, in order.

        Raises:
            ClusterError: the cluster can do no more; what is known so far is kept.
            StoppedError: Ctrl-C; the same.
        """
        keys = [self._key(question) for question in questions]
        pending = {}
        for key, runs in keys:
            if runs and key not in self._asked:
                self._asked.add(key)
                self.runs += len(runs)
                if key not in self.journal.answers:
                    pending[key] = runs
        try:
            self._run(pending)
        except KeyboardInterrupt:
            raise StoppedError(
                f"interrupted; {len(self.journal.answers)} answers are kept in "
                f"{self.journal.path}; give the same command with --resume to go on"
            ) from None
        now = time.monotonic()
        self._elapsed = self.journal.end_batch(self._batches, now - self._started)
        self._started = now - self._elapsed  # after a resume, the time before it counts too
        self._batches += 1
        return [
            self.journal.answers[key] if runs else Answer((), self.refused[key])
            for key, runs in keys
        ]

    def scenario(self, keys: Keys, network: Keys = {}, variant: int = 0) -> Effective:  # noqa: B006
        """The scenario with these keys; `variant` 1 is the reference's.

        Raises:
            ScenarioError: it is not valid.
        """
        source, base = self._bases[variant]
        return source.at({**network, **keys}, list(keys.values()), base)

    def _key(self, question: Question) -> tuple[str, list[Run]]:
        """The key of an answer, and its runs; none if the scenario is not valid."""
        name = repr((sorted(question.keys.items()), sorted(question.network.items())))
        if name not in self._scenarios:
            self._scenarios[name] = self._checked(name, question)
        scenarios = self._scenarios[name]
        if scenarios is None:
            return name, []
        runs = []
        for (source, _), scenario in zip(self._bases, scenarios, strict=True):
            case = Case("", " + ".join(scenario.stacks), {}, scenario, source.world)
            runs.append(run_of(case, question.seed, 0))
        return "+".join(run.key for run in runs), runs

    def _checked(self, name: str, question: Question) -> list[Effective] | None:
        try:
            return [
                self.scenario(question.keys, question.network, variant)
                for variant in range(len(self._bases))
            ]
        except (_native.ScenarioError, InputError) as error:
            self.refused[name] = str(error)
            return None

    def _run(self, pending: Mapping[str, Sequence[Run]]) -> None:
        waiting: dict[str, dict[int, Mapping[str, pl.DataFrame]]] = {key: {} for key in pending}
        numbered = [
            (key, variant, run) for key, runs in pending.items() for variant, run in enumerate(runs)
        ]
        indexed = [run_of(r.case, r.seed, number) for number, (*_, r) in enumerate(numbered)]
        # Other processes cannot be watched from here.
        is_here = isinstance(self._pool, ThreadPoolExecutor)
        control = _native.RunControl() if is_here else None
        try:
            for run, future in each(indexed, self._pool, self._jobs, control):
                key, variant, _ = numbered[run.index]
                error = future.exception()
                if isinstance(error, ClusterError):
                    raise error
                if error is not None:
                    self.journal.keep(key, Answer((), str(error) or type(error).__name__))
                    continue
                waiting[key][variant] = future.result()
                if len(waiting[key]) == len(pending[key]):
                    self._keep(key, waiting.pop(key))
        finally:
            if control is not None:
                control.stop()

    def _keep(self, key: str, tables: Mapping[int, Mapping[str, pl.DataFrame]]) -> None:
        if key in self.journal.answers:  # one of its runs failed
            return
        old = Observation.of(tables[1]) if 1 in tables else None
        seen = Observation.of(tables[0], old)
        self.journal.keep(key, Answer([measure(seen) for measure in self._measures]))


def shown(keys: Keys) -> str:
    """Keys with their values, for people."""
    return ", ".join(f"{key}={value}" for key, value in keys.items()) or "the scenario's own"


@contextmanager
def opened(
    verb: str,
    identity: Mapping[str, Any],
    sources: Sequence[Source],
    measures: Sequence[Measure],
    budget: Budget,
    how: Execution,
) -> Iterator[Loop]:
    """A loop with its workers and its journal.

    Raises:
        InputError, ScenarioError: a scenario is not valid, or there is nothing to resume.
    """
    scenarios = [[one.text, one.overrides, one.world] for one in sources]
    identity = {**identity, "scenarios": scenarios}
    for source in sources:
        source.effective()
    with workers({source.world for source in sources}, how) as (pool, jobs):
        journal = Journal.open(Path(how.out), verb, identity, resume=how.resume)
        try:
            yield Loop(sources, measures, journal, budget, pool, jobs)
        finally:
            journal.close()
