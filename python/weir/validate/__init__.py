"""The same scenarios in the simulator and in the Linux kernel, beside each other and scored.

>>> found = weir.validate.validate("tests/truth", cases=["10m-q34-*"])  # doctest: +SKIP
>>> [row for row in found.rows if row["holds"] is False]  # doctest: +SKIP
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from weir.api import How, carry_out
from weir.errors import InputError
from weir.results import Results
from weir.store import write_text
from weir.sweep import Case, Plan
from weir.validate import judge, truth
from weir.validate.guest import Hosted, UnhostedError, host
from weir.validate.judge import Kind, Row
from weir.validate.reduce import reduce
from weir.validate.truth import Reference, Values

__all__ = ["FILE", "SEEDS", "SERIES", "Validation", "validate"]

FILE = "validation.json"
SERIES = "reference.parquet"
"""Beside the results: the rows, and the kernel's series, so that a report can be drawn again."""

SEEDS = 40
"""So many seeds where anything is random: fewer leave the mean of a lossy run uncertain."""


@dataclass(frozen=True)
class Validation:
    """What was found; `results` are the runs behind it."""

    rows: Sequence[Row]
    score: Mapping[str, Mapping[str, int]]
    results: Results


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
    cases: Sequence[str] = (),
    seeds: int = SEEDS,
    **how: Unpack[How],
) -> Validation:
    """Repeats recorded cases in the simulator and compares.

    `cases` are patterns as of file names; without any, every case is compared. Where nothing is
    random one run is enough; elsewhere there is one for each of `seeds` seeds.

    Raises:
        WeirError: the folder holds no traces, no case matches, or no case can be carried out.
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
    words = ["weir", "validate", "--truth", str(directory), "--seeds", str(seeds)]
    words += [word for pattern in cases for word in ("--case", pattern)]
    results = carry_out(_plan(compared, shlex.join(words), seeds), **how)
    rows = [row for case in compared for row in _rows(case, results)]
    rows += [judge.skipped(name, reason) for name, reason in sorted(left_out.items())]
    validation = Validation(rows, judge.score(rows), results)
    _keep(validation, [case.reference for case in compared])
    return validation


def _selected(found: truth.Truth, patterns: Sequence[str]) -> truth.Truth:
    names = [*(reference.name for reference in found.references), *found.unusable]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise InputError(
                f"--case {pattern}: there is no such case; there are {', '.join(names)}"
            )
    if not patterns:
        return found

    def is_wanted(name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    return truth.Truth(
        tuple(reference for reference in found.references if is_wanted(reference.name)),
        {name: reason for name, reason in found.unusable.items() if is_wanted(name)},
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
    ours = [_values(case, results, run) for run in own]
    found = judge.rows(reference, of, ours)
    if reference.windows is not None and len(reference.flows) > 1:
        reason = "a packet trace of several flows does not say whose window it shows"
        found.append(judge.skipped(f"packets-{reference.name}", reason))
    elif reference.windows is not None:
        acks = results.scan("acks").filter(pl.col("run") == own[0]).collect()
        windows = (acks["cwnd_bytes"] // case.hosted.mss).to_list()
        found.append(judge.packets_row(reference.name, of, reference.windows, windows))
    return found


def _values(case: _Compared, results: Results, run: int) -> list[Values]:
    rows = results.scan("samples").filter(pl.col("run") == run).sort("t_s").collect()
    flows = case.reference.flows
    return reduce([rows.filter(flow=i) for i in range(len(flows))], flows, case.hosted.mss)


def _keep(validation: Validation, references: Sequence[Reference]) -> None:
    path = validation.results.path
    kept: dict[str, Any] = {"rows": list(validation.rows), "score": dict(validation.score)}
    kept["kernels"] = sorted({reference.kernel for reference in references})
    write_text(path / FILE, json.dumps(kept, indent=2, ensure_ascii=False))
    series = [
        reference.series.select(pl.lit(reference.name).alias("case"), pl.all())
        for reference in references
        if reference.series is not None
    ]
    if series:
        pl.concat(series).write_parquet(path / SERIES)
