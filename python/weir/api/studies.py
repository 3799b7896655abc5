"""Studies from Python: what `weir study` runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from weir.api.results import Results
from weir.base.options import MEASUREMENT, Option, documented
from weir.cells.protocol import SIZES, Settings, StudyResult
from weir.running.execution import RunOptions
from weir.running.options import RESULTS, Dask, Jobs, Out, Resume, RunsOn, ShowProgress
from weir.scenario.arguments import suggesting
from weir.scenario.labels import checked
from weir.scenario.plans import WORLD
from weir.studies import catalogue
from weir.studies.published import Published, compose


@suggesting
@documented()
def study(
    name: str,
    *,
    size: Annotated[
        str, Option("Number of cases and length of runs.", MEASUREMENT, metavar="|".join(SIZES))
    ] = Settings.size,
    repeat: Annotated[
        int | None,
        Option("Runs per cell.", MEASUREMENT, default_text="the study's own", short="-n", min=1),
    ] = Settings.repeat,
    seed: Annotated[
        int, Option("Random seed of the first repeat.", MEASUREMENT, min=0)
    ] = Settings.seed,
    stacks: Annotated[
        Sequence[str],
        Option(
            "Stacks to add to those that the study compares, as `mine.py:Mine`; may be repeated.",
            MEASUREMENT,
            metavar="STACK,...",
            default_text="none",
            flag="--stack",
        ),
    ] = (),
    world: Annotated[
        str | None, replace(WORLD, default_text="the study's first, mostly `sim`")
    ] = None,
    out: Out = RESULTS,
    jobs: Jobs = None,
    resume: Resume = False,
    executor: RunsOn = None,
    dask: Dask = None,
    show_progress: ShowProgress = True,
) -> StudyResult:
    """Runs a study and writes its cells next to the results, in `study.json`.

    Args:
        name: The study; `weir list studies` names them.

    Raises:
        TypeError: there is no such argument; the message names the nearest one.
        WeirError: there is no such study, size or world, or nothing could be run.
    """
    if world is None:
        world, *_ = catalogue.possible_worlds(catalogue.find(name))
    how = RunOptions(
        out=out,
        jobs=jobs,
        resume=resume,
        executor=executor,
        dask=dask,
        show_progress=show_progress,
    )
    added = checked(stacks, world) if stacks else ()
    result = catalogue.run(name, Settings(size, repeat, seed, how, world, added))
    return replace(result, results=Results.of(result.results))


@suggesting
@documented()
def published(
    *,
    size: Annotated[
        str,
        Option("Least size of the results to show.", MEASUREMENT, metavar="|".join(SIZES)),
    ] = Settings.size,
    out: Out = RESULTS,
    jobs: Jobs = None,
    show_progress: ShowProgress = True,
) -> Published:
    """Writes one page of all numbers and claims that the five sources print, next to ours.

    It takes the newest results of each study in `out`, of the full size if there are any, and runs
    the studies that have none.

    Raises:
        InputError: there is no such size.
        StoreError: the page could not be written.
    """
    catalogue.check_size(size)
    how = RunOptions(out=out, jobs=jobs, show_progress=show_progress)
    return compose(Settings(size=size, how=how), catalogue.run)
