"""Compares two result directories: do they differ by more than their variance?

Cases are matched by their label, which is what was compared and where on the sweep; the repeats of
a case by their seeds. Where at least two seeds are on both sides, differences are taken pair by
pair over these; elsewhere the samples are independent (Welch). All p-values together are adjusted
after Holm. For two sets of the same distribution the probability of any significant difference is
5 % at most, for any number of cases and metrics and any dependence between them.
"""

from __future__ import annotations

import filecmp
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from weir.base.errors import InputError
from weir.comparison.contrasts import Case, Verdict, in_words, judged, over
from weir.results import metrics
from weir.results.results import Results
from weir.scenario.source import SIM
from weir.statistics.intervals import (
    Difference,
    Estimate,
    holm,
    independent_difference,
    mean_interval,
    paired_difference,
)

_SIDES = ("A", "B")
_FEWEST_PAIRS = 2
_NOISE = 1e-9
"""Smaller relative differences are rounding errors of sums in another order."""
_NAMED = 5
_OWN_KEYS = ("name", "description", "measure.seed", "measure.repeat")
"""Keys whose changes are not reported."""

Values = dict[int, float | None]
"""A metric of a case, by seed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One metric of one case on both sides; the difference is B less A."""

    label: str
    point: Mapping[str, str]
    metric: metrics.Metric
    a: Estimate
    b: Estimate
    difference: Difference
    is_paired: bool
    adjusted_p: float | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict after correction for all comparisons."""
        return judged(self.difference, self.adjusted_p)

    @property
    def relative(self) -> float | None:
        """The difference over A's mean."""
        return over(self.difference, self.a.mean)

    @property
    def words(self) -> str:
        """The verdict for people."""
        for side, other in zip(_SIDES, (self.b, self.a), strict=True):
            if other.n == 0:
                return f"only in {side}"
        return in_words(self.verdict, self.difference.estimate.mean, self.relative)


@dataclass(frozen=True, slots=True)
class Change:
    """A key of a case's scenario that is not the same on both sides."""

    label: str
    key: str
    a: str
    b: str


class Diff:
    """Comparison of two result directories.

    >>> from weir import compare
    >>> before, after = (compare("reno", size="1mb", queue=q, repeat=3) for q in ("1bdp", "2bdp"))
    >>> (Diff(before, before).differs, Diff(before, after).differs)
    (False, True)
    """

    def __init__(self, a: Results, b: Results) -> None:
        """Takes results whose cases match.

        Raises:
            InputError: they do not, or runs are missing; the message names what is missing where.
        """
        self.a, self.b = a, b
        for results in self._both:
            results.verify()
        self.is_identical = _have_same_tables(a, b)
        if not self.is_identical:
            _refuse_incomplete(a, b)
            _refuse_unmatched(a, b)

    @cached_property
    def findings(self) -> list[Finding]:
        """Every metric that has a value, case by case; nothing for identical tables.

        Raises:
            InputError: no case has the two runs that a variance takes.
        """
        found = [] if self.is_identical else list(self._compared())
        p_values = [p for finding in found if (p := finding.difference.p_value) is not None]
        if found and not p_values:
            runs = " and ".join(
                f"{r.runs.height} in {s}" for s, r in zip(_SIDES, self._both, strict=True)
            )
            raise InputError(
                f"too few repeats: a variance takes two runs of a case, and there are "
                f"{runs} for {len(self.a.cases)} cases"
            )
        adjusted = iter(holm(p_values))
        return [
            finding
            if finding.difference.p_value is None
            else replace(finding, adjusted_p=next(adjusted))
            for finding in found
        ]

    @property
    def differs(self) -> bool:
        """Whether any difference is significant."""
        return any(finding.verdict == "significant" for finding in self.findings)

    @property
    def tested(self) -> int:
        """Number of comparisons that the correction covers."""
        return sum(finding.adjusted_p is not None for finding in self.findings)

    @property
    def changes(self) -> list[Change]:
        """What is not the same in the scenarios of matching cases, seeds left aside."""
        others = {case["label"]: case for case in self.b.cases}
        return [
            change
            for case in self.a.cases
            if case["label"] in others
            for change in _changes(case, others[case["label"]])
        ]

    @property
    def _both(self) -> tuple[Results, Results]:
        return self.a, self.b

    def _compared(self) -> Iterator[Finding]:
        measured = {metric.name for results in self._both for metric in results.measured()}
        for case in self.a.cases:
            label = case["label"]
            is_settled = all(_repeats_itself(results, label) for results in self._both)
            for metric in metrics.METRICS:
                if metric.name not in measured:
                    continue
                a, b = (_present(results.values(label, metric.name)) for results in self._both)
                if a or b:
                    yield _finding(case, metric, a, b, is_settled=is_settled)


def _finding(
    case: Case, metric: metrics.Metric, a: Values, b: Values, *, is_settled: bool
) -> Finding:
    is_paired = len(a.keys() & b.keys()) >= _FEWEST_PAIRS
    if is_paired:
        difference = paired_difference(b, a)
        ways = 2.0 ** len(a.keys() & b.keys())
    else:
        difference = independent_difference(b.values(), a.values())
        ways = float(math.comb(len(a) + len(b), len(a)))
    ours, theirs = (mean_interval(side.values(), metric.bounds) for side in (a, b))
    difference = _without_noise(difference, ours, theirs)
    if not is_settled:
        difference = _without_variance(difference, ways)
    return Finding(case["label"], case["point"], metric, ours, theirs, difference, is_paired)


def _without_noise(difference: Difference, a: Estimate, b: Estimate) -> Difference:
    mean, scale = difference.estimate.mean, max(abs(a.mean or 0.0), abs(b.mean or 0.0))
    if mean is None or difference.p_value is None or abs(mean) > _NOISE * scale:
        return difference
    return Difference(Estimate(0.0, 0.0, 0.0, difference.estimate.n), 1.0)


def _without_variance(difference: Difference, ways: float) -> Difference:
    """A difference that has come out the same every time although the runs are random.

    A test over a variance of zero would be sure at once, of two counts that are 3 and 3 here and 4
    and 4 there. What is sure without a variance is how many `ways` there are to exchange the sides
    that leave nothing as extreme but this one and its opposite: the permutation test.
    """
    estimate = difference.estimate
    if not estimate.mean or estimate.lo != estimate.hi or difference.p_value is None:
        return difference
    return Difference(estimate, max(difference.p_value, min(1.0, 2 / ways)))


def _repeats_itself(results: Results, label: str) -> bool:
    """Whether all runs of a case, two or more, are the same: nothing in it is random."""
    hashes = results.runs.filter(pl.col("label") == label)["trace_hash"]
    return hashes.len() > 1 and hashes.n_unique() == 1


def _present(values: Mapping[int, float | None]) -> Values:
    return {seed: v for seed, v in values.items() if v is not None and not math.isnan(v)}


def _have_same_tables(a: Results, b: Results) -> bool:
    one, other = (sorted(file.name for file in r.path.glob("*.parquet")) for r in (a, b))
    same, *_ = filecmp.cmpfiles(a.path, b.path, one, shallow=False)
    return one == other == same != []


def _refuse_incomplete(a: Results, b: Results) -> None:
    for side, results in zip(_SIDES, (a, b), strict=True):
        if not results.manifest["complete"]:
            planned = results.manifest["runs"]["planned"]
            lacking = planned - results.runs.filter(pl.col("status") == "ok").height
            first = "".join(f"; {label}: {why}" for label, why in [*results.failures.items()][:1])
            raise InputError(
                f"{side} lacks {lacking} of its {planned} runs{first} ({results.path})"
            )


def _refuse_unmatched(a: Results, b: Results) -> None:
    labels = [[case["label"] for case in results.cases] for results in (a, b)]
    lacking = [
        f"{side} lacks {_listed([label for label in other if label not in own])}"
        for side, own, other in zip(_SIDES, labels, labels[::-1], strict=True)
        if set(other) - set(own)
    ]
    if lacking:
        raise InputError(f"the cases do not match: {'; '.join(lacking)}")


def _listed(labels: list[str]) -> str:
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    return ", ".join(f"«{label}»" for label in labels[:_NAMED]) + more


def _changes(a: Case, b: Case) -> Iterator[Change]:
    sides = [dict(_flat({**case["scenario"], "world": case.get("world", SIM)})) for case in (a, b)]
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        one, other = (side.get(key, "nothing") for side in sides)
        if one != other and key not in _OWN_KEYS:
            yield Change(a["label"], key, one, other)


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Each value of a scenario by its key, as `--set` writes it; a list of plain values is one."""
    inner: list[tuple[str, Any]]
    if isinstance(value, dict):
        inner = [*value.items()]
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        inner = [(str(index), item) for index, item in enumerate(value)]
    else:
        yield path, value if isinstance(value, str) else json.dumps(value)
        return
    for key, item in inner:
        yield from _flat(item, f"{path}.{key}" if path else key)
