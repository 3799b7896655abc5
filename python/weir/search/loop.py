"""Questions and answers: scenarios with seeds in, one number per expression out.

A question is the keys of a scenario, a network of the sweep and a seed. Its answer is a pure
function of these in the simulator and in guests, so it does not matter which worker has it, in
which order, and whether it was there before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from weir import _native
from weir.base.errors import InputError, StoppedError
from weir.running.execution import Execution, workers
from weir.running.runner import each
from weir.scenario.source import Effective, Source
from weir.scenario.sweep import Case, Run, run_of
from weir.search.expressions import Observation, Value
from weir.search.journal import Answer, Journal
from weir.search.space import Keys, option

BUDGET = option(
    "When the search ends: a number of runs as `2000`, or a time as `20min`.",
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

    runs: float = math.inf
    seconds: float = math.inf

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Reads `2000` or `20min`.

        Raises:
            InputError: it is neither.
        """
        if text.isdecimal() and int(text) > 0:
            return cls(runs=int(text))
        with suppress(ValueError):
            if (seconds := _native.parse_quantity("time", text)) > 0:
                return cls(seconds=seconds)
        raise InputError(
            f"--budget {text}: a number of runs as 2000, or a time as 20min, is needed"
        )


@dataclass
class Loop:
    """Answers questions from a journal, or by runs, until a budget is spent."""

    bases: Sequence[tuple[Source, Effective]]
    measures: Sequence[Measure]
    journal: Journal
    budget: Budget
    pool: Executor
    jobs: int
    runs: int = 0
    """Different runs that were needed so far, also those in the journal."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why scenarios are not valid."""
    _started: float = field(default_factory=time.monotonic)
    _batches: int = 0
    _elapsed: float = 0.0
    _asked: set[str] = field(default_factory=set)
    _cases: dict[str, list[Case]] = field(default_factory=dict)

    @property
    def is_spent(self) -> bool:
        """Whether the budget is used up."""
        return self.runs >= self.budget.runs or self._elapsed >= self.budget.seconds

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """The answers of a batch, in order.

        Raises:
            ClusterError: the cluster can do no more; what is known so far is kept.
            StoppedError: Ctrl-C; the same.
        """
        keys = [self._key(question) for question in questions]
        new = {key: runs for key, runs in keys if runs and key not in self._asked}
        self._asked |= new.keys()
        self.runs += sum(map(len, new.values()))
        try:
            self._run({k: runs for k, runs in new.items() if k not in self.journal.answers})
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

    def _key(self, question: Question) -> tuple[str, list[Run]]:
        """The key of an answer, and its runs; none if the scenario is not valid."""
        name = repr((sorted(question.keys.items()), sorted(question.network.items())))
        if name not in self._cases:
            try:
                self._cases[name] = [_case(*base, question) for base in self.bases]
            except (_native.ScenarioError, InputError) as error:
                self._cases[name], self.refused[name] = [], str(error)
        runs = [run_of(case, question.seed, 0) for case in self._cases[name]]
        return "+".join(run.key for run in runs) or name, runs

    def _run(self, pending: Mapping[str, Sequence[Run]]) -> None:
        flat = [(key, n, run) for key, runs in pending.items() for n, run in enumerate(runs)]
        numbered = [replace(run, index=number) for number, (*_, run) in enumerate(flat)]
        tables: dict[str, dict[int, Mapping[str, pl.DataFrame]]] = {key: {} for key in pending}
        # Other processes cannot be watched from here.
        is_here = isinstance(self.pool, ThreadPoolExecutor)
        control = _native.RunControl() if is_here else None
        try:
            for ended in each(numbered, self.pool, self.jobs, control):
                key, variant, _ = flat[ended.run.index]
                if ended.error:
                    self.journal.keep(key, Answer((), ended.error))
                    continue
                tables[key][variant] = ended.tables
                if len(tables[key]) == len(pending[key]):
                    self.journal.keep(key, self._answer(tables.pop(key)))
        finally:
            if control is not None:
                control.stop()

    def _answer(self, tables: Mapping[int, Mapping[str, pl.DataFrame]]) -> Answer:
        old = Observation.of(tables[1]) if 1 in tables else None
        seen = Observation.of(tables[0], old)
        return Answer([measure(seen) for measure in self.measures])


def _case(source: Source, base: Effective, question: Question) -> Case:
    """A question's scenario.

    Raises:
        InputError, ScenarioError: it is not valid.
    """
    keys = {**question.network, **question.keys}
    scenario = source.at(keys, list(question.keys.values()), base)
    return Case("", " + ".join(scenario.stacks), {}, scenario, source.world)


def shown(keys: Keys) -> str:
    """Keys with their values, for people."""
    return ", ".join(f"{key}={value}" for key, value in keys.items()) or "the scenario's own"


@contextmanager
def opened(
    verb: str,
    identity: Mapping[str, Any],
    sources: Sequence[Source],
    measures: Sequence[Measure],
    budget: str,
    how: Execution,
) -> Iterator[Loop]:
    """A loop with its workers and its journal.

    Raises:
        InputError, ScenarioError: a scenario is not valid, or there is nothing to resume.
    """
    until = Budget.parse(budget)
    scenarios = [[one.text, one.overrides, one.world] for one in sources]
    identity = {**identity, "scenarios": scenarios}
    bases = [(source, source.effective()) for source in sources]
    with workers({source.world for source in sources}, how) as (pool, jobs):
        journal = Journal.open(Path(how.out), verb, identity, resume=how.resume)
        try:
            yield Loop(bases, measures, journal, until, pool, jobs)
        finally:
            journal.close()
