"""The radio model compared with arithmetic, theory and published measurements.

>>> found = weir.radio_validation.comparison(size="small").run_plan()  # doctest: +SKIP
>>> [row for row in found.rows if row["holds"] is False]  # doctest: +SKIP
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

from weir.base.disk import write_text
from weir.base.errors import InputError
from weir.radio_validation.rows import rows, score
from weir.radio_validation.scenes import SIZES, SMALL, Scene, scenes
from weir.recordings.outcome import Validation, wanted
from weir.results import manifest
from weir.results.results import Results
from weir.running.execution import RunOptions, run_plan
from weir.scenario.sweep import Case, Plan

FILE = manifest.RADIO
"""Next to the results: the rows, so that a report can be drawn again."""

__all__ = ["FILE", "SIZES", "SMALL", "RadioComparison", "comparison"]


@dataclass(frozen=True)
class RadioComparison:
    """What is to run, and what it is held against."""

    scenes: Sequence[Scene]
    plan: Plan

    def run_plan(self, **how: Unpack[RunOptions]) -> Validation:
        """Runs it and compares."""
        return self.judged(run_plan(self.plan, **how))

    def judged(self, results: Results) -> Validation:
        """Compares what was run, and keeps the rows next to it."""
        found = rows(self.scenes, results)
        totals = score(found)
        text = json.dumps({"rows": found, "score": totals}, indent=2, ensure_ascii=False)
        write_text(results.path / FILE, text)
        return Validation(found, totals, results)


def comparison(
    *,
    size: str = SMALL,
    cases: Sequence[str] = (),
    repeat: int | None = None,
    seed: int = 1,
) -> RadioComparison:
    """Every run of a validation; `cases` are patterns as of file names.

    Raises:
        InputError: there is no such size, or no case matches.
    """
    if size not in SIZES:
        raise InputError(f"--size {size}: there are {' and '.join(SIZES)}")
    repeat = repeat or SIZES[size].seeds
    known = {scene.name: scene for scene in scenes(SIZES[size])}
    chosen = [known[name] for name in wanted([*known], cases)]
    bases = (scene.base for scene in chosen if scene.base)
    needed = dict.fromkeys([*(scene.name for scene in chosen), *bases])
    planned = tuple(_case(known[name], repeat, seed) for name in needed)
    words = ["weir", "validate", "--radio", "--size", size]
    words += ["--repeat", str(repeat), "--seed", str(seed)]
    words += [word for pattern in cases for word in ("--case", pattern)]
    most = max(case.scenario.repeat for case in planned)
    return RadioComparison(chosen, Plan("validate", shlex.join(words), planned, most, seed))


def _case(scene: Scene, repeat: int, seed: int) -> Case:
    source = scene.source.with_override("measure.repeat", str(repeat if scene.draws else 1))
    scenario = source.with_override("measure.seed", str(seed)).at({})
    return Case(scene.name, " + ".join(scenario.stacks), {}, scenario)
