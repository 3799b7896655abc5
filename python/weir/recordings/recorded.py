"""Recorded runs of a kernel's TCP, repeated in the simulator."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Unpack

import polars as pl

from weir.base.errors import InputError
from weir.base.options import Option
from weir.recordings import judge, truth
from weir.recordings.guest import Hosted, host
from weir.recordings.judge import Kind, Row
from weir.recordings.outcome import Cases, Validation, keep, values, wanted
from weir.recordings.tc import UnhostedError
from weir.recordings.truth import Reference
from weir.results.results import Results
from weir.running.execution import RunOptions, run_plan
from weir.scenario.sweep import Case, Plan

SEEDS = 40
"""Seeds per case with randomness: fewer leave the mean of a lossy run uncertain."""


@dataclass(frozen=True)
class _Compared:
    reference: Reference
    hosted: Hosted

    @property
    def kind(self) -> Kind:
        return judge.kind(self.reference, draws=self.hosted.draws)


def validate(
    directory: str | Path,
    *,
    cases: Cases = (),
    seeds: Annotated[
        int, Option("With {reference}: seeds per case with randomness.", min=2)
    ] = SEEDS,
    **how: Unpack[RunOptions],
) -> Validation:
    """Repeats recorded cases in the simulator and compares.

    `cases` are patterns as of file names; without any, every case is compared. Where nothing is
    random one run is enough; elsewhere there is one for each of `seeds` seeds.

    Raises:
        WeirError: the folder holds no traces, no case matches, or no case can run.
    """
    found = _selected(truth.read(directory), cases)
    compared, left_out = [], dict(found.unusable)
    for reference in found.references:
        try:
            acks = judge.FIRST_ACKS if reference.windows else 0
            compared.append(_Compared(reference, host(reference, acks=acks)))
        except UnhostedError as error:
            left_out[reference.name] = str(error)
    if not compared:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in sorted(left_out.items()))
        raise InputError(f"{directory}: nothing can be compared: {reasons}")
    words = ["weir", "validate", "--reference", str(directory), "--seeds", str(seeds)]
    words += [word for pattern in cases for word in ("--case", pattern)]
    results = run_plan(_plan(compared, shlex.join(words), seeds), **how)
    rows = [row for case in compared for row in _rows(case, results)]
    rows += [judge.skipped(name, reason) for name, reason in sorted(left_out.items())]
    return keep(rows, results, [case.reference for case in compared])


def _selected(found: truth.Truth, patterns: Sequence[str]) -> truth.Truth:
    names = [*(reference.name for reference in found.references), *found.unusable]
    chosen = set(wanted(names, patterns))
    return truth.Truth(
        tuple(reference for reference in found.references if reference.name in chosen),
        {name: reason for name, reason in found.unusable.items() if name in chosen},
    )


def _plan(compared: Sequence[_Compared], command: str, seeds: int) -> Plan:
    cases = []
    for case in compared:
        repeat = seeds if case.hosted.draws else 1
        scenario = case.hosted.source.with_override("measure.repeat", str(repeat)).effective()
        cases.append(Case(case.reference.name, " + ".join(scenario.stacks), {}, scenario))
    repeat = max(case.scenario.repeat for case in cases)
    return Plan("validate", command, tuple(cases), repeat, seed=1)


def _rows(case: _Compared, results: Results) -> list[Row]:
    reference, of = case.reference, case.kind
    own = results.runs.filter(label=reference.name, status="ok").sort("repeat")["run"].to_list()
    if not own:
        return [judge.skipped(reference.name, "the simulation failed")]
    ours = [values(results, run, reference.flows, case.hosted.mss) for run in own]
    found = judge.rows(reference, of, ours)
    if reference.windows is not None and len(reference.flows) > 1:
        reason = "a packet trace of several flows does not say whose window it shows"
        found.append(judge.skipped(f"packets-{reference.name}", reason))
    elif reference.windows is not None:
        acks = results.scan("acks").filter(pl.col("run") == own[0]).collect()
        windows = (acks["cwnd_bytes"] // case.hosted.mss).to_list()
        found.append(judge.packets_row(reference.name, of, reference.windows, windows))
    return found
