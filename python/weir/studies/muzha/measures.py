"""All scenarios and all cells of the study, part by part."""

from __future__ import annotations

from weir.results import Results
from weir.studies import Cell
from weir.studies.contest import Contests, Extent
from weir.studies.muzha import (
    chain,
    cross,
    dynamics,
    levels,
    limits,
    losses,
    marking,
    mobility,
    sensitivity,
    slowstart,
)


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario by its label."""
    parts = (
        chain,
        cross,
        dynamics,
        levels,
        limits,
        losses,
        marking,
        mobility,
        sensitivity,
        slowstart,
    )
    return {label: text for part in parts for label, text in part.cases(extent).items()}


def study_cells(results: Results, extent: Extent) -> list[Cell]:
    """Every cell."""
    contests = Contests(results)
    return [
        *chain.cells(results, contests, extent),
        *cross.cells(contests, extent),
        *dynamics.cells(results, contests),
        *levels.cells(contests, extent),
        *losses.cells(contests, extent),
        *mobility.cells(contests),
        *sensitivity.cells(contests, extent),
        *limits.cells(contests, extent),
        *marking.cells(results, contests, extent),
        *slowstart.cells(results, extent),
    ]
