"""`weir explain`: which settings that a paper does not state reproduce its numbers?

A cell's residual is (measured - published) / sigma, where sigma² joins the spread of both sides'
runs, the digits that are printed, and a tolerance for what model and paper do differently. A
setting's misfit is minus twice the log likelihood of the residuals under Student's t with four
degrees of freedom, which one wrong cell does not decide. Settings are not worse than the best if
their misfit is within 3.84 of the best one's: the 95 % quantile of χ² with one degree of freedom
(Wilks 1938). Where the best misses by more than its errors, the 3.84 grow in proportion (McCullagh
and Nelder 1989, §9.2.4: overdispersion).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, variance
from typing import Annotated, Any

from weir import _native
from weir.base.errors import InputError
from weir.running.execution import Execution
from weir.scenario.source import Source
from weir.search.engine import Evolution
from weir.search.loop import BUDGET, FRESH, Loop, Question, Tell, opened, shown
from weir.search.published import Cell, Table
from weir.search.space import Bounds, Gene, Keys, Point, Space, option

_SEEDS = 3
_FINAL_SEEDS = 6
_BATCH = 18
_MOST_BATCHES = 10 * _BATCH + 1
_NU = 4.0
_WILKS = 3.84
_NEAR = 3 * _WILKS
"""Settings within this misfit of the best are measured again with more seeds."""
_MOST_FINAL = 20
_STEPS = 10
_FIRST_STEP = 0.01
"""Of the bounds; each next step is twice as long."""
_POLISHED = 2
"""How often the ends are searched again from a better setting found there."""
_WHOLE = 0.9
"""A range that covers this share of the bounds says nothing about the setting."""


@dataclass(frozen=True)
class ExplainOptions:
    """How long is searched, and how exact the model is taken to be."""

    published: Annotated[Path | None, option("Published numbers, as CSV.", metavar="FILE")] = None
    space: Bounds = None
    budget: Annotated[str, BUDGET] = "5000"
    tolerance: Annotated[
        str,
        option("How far model and paper may differ where all settings are right.", metavar="SHARE"),
    ] = "2%"
    seed: Annotated[int, option("Random seed.", min=0)] = 1

    @property
    def share(self) -> float:
        """The tolerance as a fraction.

        Raises:
            InputError: it is none.
        """
        try:
            return _native.parse_quantity("ratio", self.tolerance)
        except ValueError as error:
            raise InputError(f"--tolerance {error}") from None


@dataclass(eq=False)
class Setting:
    """Values of the unknowns, and what was measured with them."""

    point: Point
    keys: Keys
    samples: dict[Cell, list[float]] = field(default_factory=dict)
    refused: str = ""


@dataclass(frozen=True)
class Fit:
    """One unknown: the values that are not worse than the best."""

    key: str
    best: str
    low: str | None
    high: str | None
    choices: Sequence[str]
    """Of a list, in place of both ends."""
    distinguished: bool
    """False if all values of the bounds are as good."""

    @property
    def words(self) -> str:
        """What is known of it."""
        what = f"any of {', '.join(self.choices)}" if self.choices else f"{self.low} to {self.high}"
        if not self.distinguished:
            return f"{self.key} cannot be distinguished: {what} fits as well"
        if self.low == self.high and not self.choices:
            return f"{self.key} = {self.best}"
        return f"{self.key}: {what} fits, best {self.best}"


@dataclass(frozen=True)
class Explained:
    """The answer."""

    table: Table
    best: Setting
    fits: Sequence[Fit]
    residuals: Mapping[Cell, float]
    """Of the best setting."""
    ranges: Mapping[Cell, tuple[float, float]]
    """The lowest and highest residual of a cell over all settings that are not worse."""
    unfit: Sequence[Cell]
    """Cells that no setting fits within two errors."""
    equal: int
    tried: int
    runs: int
    journal: str

    @property
    def fitting(self) -> dict[str, tuple[int, int]]:
        """How many cells the best setting fits within two errors, and of how many."""
        found: dict[str, list[bool]] = {"searched": [], "held_out": []}
        for cell, z in self.residuals.items():
            found["held_out" if cell.is_held_out else "searched"].append(abs(z) <= 2)
        return {name: (sum(fit), len(fit)) for name, fit in found.items()}


def explain(
    source: Source,
    table: Table,
    space: Space,
    options: ExplainOptions,
    how: Execution,
    tell: Tell = lambda _: None,
) -> Explained:
    """Searches on part of the cells, and judges on the rest.

    Raises:
        InputError, ScenarioError: a key is not valid, or no setting can run.
    """
    measures = [column.value for column in table.columns]
    identity = {
        "space": [(one.key, one.template) for one in space.keys],
        "table": [repr(table.rows), [c.text for c in table.columns], repr(table.cells)],
        "options": repr(options),
    }
    with opened("explain", identity, [source], measures, options.budget, how) as loop:
        search = _Search(loop, table, space, options)
        search.run(tell)
        found = search.judged()
        loop.journal.finish({"command": "explain", **as_json(found)})
    return found


class _Search:
    """The settings of one search."""

    def __init__(self, loop: Loop, table: Table, space: Space, options: ExplainOptions) -> None:
        self.loop, self.table, self.space = loop, table, space
        self.options = options
        self.tried: dict[str, Setting] = {}
        self.spread: dict[Cell, float] = {}
        """The standard deviation of each cell's runs, as a share of the mean."""

    @property
    def valid(self) -> list[Setting]:
        """Those that can run."""
        return [one for one in self.tried.values() if not one.refused]

    def run(self, tell: Tell) -> None:
        """Asks, runs, tells, until the budget is spent."""
        for number in range(_MOST_BATCHES):
            engine = Evolution(self.space.genes, self.options.seed + 7919 * number)
            engine.tell([one.point for one in self.valid], [self.misfit(one) for one in self.valid])
            new = [self._setting(point) for point in engine.ask(_BATCH)]
            self._measure(new, _SEEDS, self.options.seed)
            self._set_spread(self.valid)
            if not self.valid:
                raise InputError(f"no setting can run; the first: {new[0].refused}")
            best = min(self.valid, key=self.misfit)
            tell(f"{self.loop.runs} runs, {len(self.tried)} settings, best: {shown(best.keys)}")
            if self.loop.is_spent:
                return

    def misfit(self, one: Setting) -> float:
        """Minus twice the log likelihood of the cells of the search, but for a constant."""
        own = [z for cell, z in self.residuals(one).items() if not cell.is_held_out]
        return (_NU + 1) * math.fsum(math.log1p(z * z / _NU) for z in own)

    def residuals(self, one: Setting) -> dict[Cell, float]:
        """By how many errors each cell is above the published one."""
        found = {}
        for cell, values in one.samples.items():
            mean = fmean(values)
            runs = (self.spread.get(cell, 0.0) * max(abs(mean), abs(cell.value))) ** 2
            own = runs * (1 / len(values) + 1 / cell.repeats)
            sigma = math.sqrt(own + cell.error**2 + (self.options.share * cell.value) ** 2)
            found[cell] = (mean - cell.value) / sigma if sigma else 0.0
        return found

    def judged(self) -> Explained:
        """Measures the best ones again with fresh seeds, finds the ends of their ranges."""
        valid = sorted(self.valid, key=self.misfit)
        near = [s for s in valid if self.misfit(s) <= self.misfit(valid[0]) + _NEAR]
        again = [Setting(s.point, s.keys) for s in near[:_MOST_FINAL]]
        final = self._finally(again)
        if not final:
            why = again[0].refused
            raise InputError(f"no setting that fits can run with other seeds; the best: {why}")
        self._set_spread(final)
        best = min(final, key=self.misfit)
        for _ in range(_POLISHED):
            before = best
            final += self._around(best)
            best = min(final, key=self.misfit)
            if best is before:
                break
        equal = [s for s in final if self.misfit(s) <= self._limit(best)]
        every = [self.residuals(s) for s in (*final, *valid)]
        cells = self.table.cells
        fitting = {cell: [self.residuals(s)[cell] for s in equal] for cell in cells}
        return Explained(
            self.table,
            best,
            [self._fit(position, equal, best) for position in range(len(self.space.genes))],
            self.residuals(best),
            {cell: (min(z), max(z)) for cell, z in fitting.items()},
            [cell for cell in cells if min(abs(z[cell]) for z in every) > 2],
            len(equal),
            len(self.tried),
            self.loop.runs,
            str(self.loop.journal.path),
        )

    def _around(self, best: Setting) -> list[Setting]:
        """Settings that differ from the best in one unknown, up to the ends of what fits."""
        found: list[Setting] = []
        for position, gene in enumerate(self.space.genes):
            if gene.is_number:
                found += self._end(best, position, -1) + self._end(best, position, 1)
            else:
                count = len(gene.choices)
                found += self._moved(best, position, [(n + 0.5) / count for n in range(count)])
        return found

    def _end(self, best: Setting, position: int, direction: int) -> list[Setting]:
        """Settings further and further from the best, then between what fits and what does not."""
        found: list[Setting] = []
        good = place = best.point[position]
        step, bad = _FIRST_STEP, None
        for _ in range(_STEPS):
            far = min(1.0, max(0.0, place + direction * step))
            at = far if bad is None else (good + bad) / 2
            tried = self._moved(best, position, [at])
            found += tried
            if not tried or self.misfit(tried[0]) > self._limit(best):
                bad = at
            elif at in (0.0, 1.0):
                break
            else:
                good, step = at, 2 * step
        return found

    def _limit(self, best: Setting) -> float:
        """The misfit up to which a setting is not worse.

        Where the best one misses by more than its errors, all are that much less exact.
        """
        cells = sum(not cell.is_held_out for cell in self.table.cells)
        misfit = self.misfit(best)
        return misfit + _WILKS * max(1.0, misfit / cells)

    def _finally(self, settings: Sequence[Setting]) -> list[Setting]:
        self._measure(settings, _FINAL_SEEDS, self.options.seed + FRESH)
        return [one for one in settings if not one.refused]

    def _moved(self, best: Setting, position: int, places: Sequence[float]) -> list[Setting]:
        points = [(*best.point[:position], p, *best.point[position + 1 :]) for p in places]
        return self._finally([Setting(point, self.space.at(point)) for point in points])

    def _setting(self, point: Point) -> Setting:
        keys = self.space.at(point)
        return self.tried.setdefault(repr(keys), Setting(point, keys))

    def _measure(self, settings: Sequence[Setting], seeds: int, first: int) -> None:
        missing = [s for s in dict.fromkeys(settings) if not s.samples and not s.refused]
        questions = [
            (one, row, Question(one.keys, first + seed, keys))
            for seed in range(seeds)
            for one in missing
            for row, keys in enumerate(self.table.rows)
        ]
        answers = self.loop.answers([question for *_, question in questions])
        for (one, row, _), answer in zip(questions, answers, strict=True):
            for cell in (c for c in self.table.cells if c.row == row and not one.refused):
                value = None if answer.error else answer.values[cell.column]
                if value is None:
                    one.refused = answer.error or f"the cell {self.table.name(cell)} has no value"
                else:
                    one.samples.setdefault(cell, []).append(value)

    def _set_spread(self, settings: Sequence[Setting]) -> None:
        """The spread of each cell, pooled over the settings: the root of the mean variance."""
        for cell in self.table.cells:
            shares = [
                variance(s.samples[cell]) / mean**2
                for s in settings
                if (mean := fmean(s.samples[cell])) != 0
            ]
            self.spread[cell] = math.sqrt(fmean(shares)) if shares else 0.0

    def _fit(self, position: int, equal: Sequence[Setting], best: Setting) -> Fit:
        gene, key = self.space.genes[position], self.space.name(position)
        own = gene.text(best.point[position])
        places = sorted(one.point[position] for one in equal)
        if gene.is_number:
            low, high = gene.text(places[0]), gene.text(places[-1])
            return Fit(key, own, low, high, (), not _covered(gene, places))
        found = {gene.text(place) for place in places}
        kept = tuple(one for one in gene.choices if one in found)
        name = f"{key}?" if gene.is_switch else key
        return Fit(name, own, None, None, kept, kept != gene.choices)


def _covered(gene: Gene, places: Sequence[float]) -> bool:
    """Whether places reach over the bounds."""
    if gene.is_whole and not gene.is_log:
        return gene.value(places[0]) == gene.low and gene.value(places[-1]) == gene.high
    return places[-1] - places[0] >= _WHOLE


def as_json(found: Explained) -> dict[str, Any]:
    """The answer for JSON."""
    return {
        "settings": dict(found.best.keys),
        "fits": [{**vars(fit), "words": fit.words} for fit in found.fits],
        "fitting": found.fitting,
        "runs": found.runs,
        "rows": list(_rows(found)),
    }


def _rows(found: Explained) -> Iterator[dict[str, Any]]:
    for cell in found.table.cells:
        yield {
            "keys": dict(found.table.rows[cell.row]),
            "metric": found.table.columns[cell.column].text,
            "published": cell.value,
            "measured": fmean(found.best.samples[cell]),
            "residual": found.residuals[cell],
            "held_out": cell.is_held_out,
            "fitted_by_some": cell not in found.unfit,
        }
