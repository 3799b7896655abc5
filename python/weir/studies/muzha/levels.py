"""What an index does: how many levels there are, and by how much each changes the window."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from weir.stats import mean_interval
from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Contests, Extent
from weir.studies.muzha import chain
from weir.studies.muzha.experiment import (
    MUZHA,
    NEWRENO,
    WINDOWS,
    Radio,
    Sender,
    hops_of,
    scenario,
)
from weir.studies.muzha.quantities import RETRANSMISSIONS, THROUGHPUT, ratio, summed

LEVELS = (3, 4, 5, 6, 7)
USUAL_LEVELS = 5
HOPS = (4, 8, 16, 32)
"""The slides average over 4 to 32 nodes; these stand for all."""

LEVELS_TABLE = "levels"

FAMILIES = {"AIMD": "aimd", "AIAD": "aiad", "MIMD": "mimd", "MIAD": "miad"}
ADDS, SUBTRACTS = (1, 2, 3), (1, 2, 3)
MULTIPLIES = (1.125, 1.19, 1.25)
"""Printed as 1.125, 0.19 and 0.25: the missing ones are ours."""

SHRINKS = (0.5, 0.65, 0.8)

GRID_HOPS = (4, 8)
GRID_WINDOW = 32

FINALISTS = {
    "AIMD(1, 0.8)": "newreno/drai-aimd(1,0.8)",
    "AIAD(1, 3)": "newreno/drai-aiad(1,3)",
    "MIMD(1.125, 0.8)": "newreno/drai-mimd(1.125,0.8)",
    "MIAD(1.125, 3)": "newreno/drai-miad(1.125,3)",
}
TABLE_OF_FIVE = "five levels"


def settings(family: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The increases and decreases of a family."""
    return (
        ADDS if family.startswith("AI") else MULTIPLIES,
        SUBTRACTS if family.endswith("AD") else SHRINKS,
    )


def grid_table(family: str) -> str:
    """The name of the table of a family."""
    return f"grid, {family}"


def finalists_table(window: int) -> str:
    """The name of the table of the finalists."""
    return f"finalists, window {window}"


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of this part by its label, but what the chain has already."""
    found: dict[str, str] = {}
    for hops, window, levels in itertools.product(hops_of(extent, HOPS), WINDOWS, LEVELS):
        if levels == USUAL_LEVELS:
            continue
        sender = Sender(f"newreno/muzha(levels={levels})", window)
        radio = Radio(hops, feedback=f'{{ kind = "drai", levels = {levels} }}')
        found[_levels_label(levels, hops, window)] = scenario(radio, [sender], extent)
    for family, hops in itertools.product(FAMILIES, hops_of(extent, GRID_HOPS)):
        for a, b in itertools.product(*settings(family)):
            sender = Sender(f"newreno/drai-{FAMILIES[family]}({a:g},{b:g})", GRID_WINDOW)
            found[_grid_label(family, a, b, hops)] = scenario(Radio(hops), [sender], extent)
    for hops, window in itertools.product(hops_of(extent, HOPS), WINDOWS):
        for name, stack in FINALISTS.items():
            sender = Sender(stack, window)
            found[_final_label(name, hops, window)] = scenario(Radio(hops), [sender], extent)
    return found


def cells(contests: Contests, extent: Extent) -> Iterator[Cell]:
    """Throughput by number of levels, over the grid, and of the finalists."""
    yield from _of_levels(contests, extent)
    yield from _of_grid(contests, extent)
    yield from _of_finalists(contests, extent)


def _of_levels(contests: Contests, extent: Extent) -> Iterator[Cell]:
    lengths = hops_of(extent, HOPS)
    for window, levels in itertools.product(WINDOWS, LEVELS):
        parts = [
            THROUGHPUT.by_seed(contests, _levels_label(levels, hops, window)) for hops in lengths
        ]
        total = summed(parts)
        means = (None if value is None else value / len(lengths) for value in total.values())
        yield cell(
            LEVELS_TABLE,
            f"window {window}",
            f"{levels} levels",
            THROUGHPUT.unit,
            mean_interval(means, (0.0, None)),
            note=f"Mean over {', '.join(map(str, lengths))} hops.",
        )


def _of_grid(contests: Contests, extent: Extent) -> Iterator[Cell]:
    """Throughput over NewReno's at the same lengths and window."""
    lengths = hops_of(extent, GRID_HOPS)
    reference = summed(
        [THROUGHPUT.by_seed(contests, _final_label(NEWRENO, hops, GRID_WINDOW)) for hops in lengths]
    )
    for family in FAMILIES:
        for a, b in itertools.product(*settings(family)):
            own = [THROUGHPUT.by_seed(contests, _grid_label(family, a, b, h)) for h in lengths]
            ours = ratio(summed(own), reference)
            place = grid_table(family), increase_name(family, a), decrease_name(family, b)
            yield cell(*place, "× NewReno", ours)


def _of_finalists(contests: Contests, extent: Extent) -> Iterator[Cell]:
    lengths = hops_of(extent, HOPS)
    for window in WINDOWS:
        for name in (*FINALISTS, TABLE_OF_FIVE):
            for quantity in (THROUGHPUT, RETRANSMISSIONS):
                own, reference = (
                    summed(
                        [quantity.by_seed(contests, _final_label(who, h, window)) for h in lengths]
                    )
                    for who in (name, NEWRENO)
                )
                place = finalists_table(window), name, quantity.name
                yield cell(*place, "× NewReno", ratio(own, reference))


def increase_name(family: str, a: float) -> str:
    """A row of the grid."""
    return f"+{a:g}" if family.startswith("AI") else f"×{a:g}"


def decrease_name(family: str, b: float) -> str:
    """A column of the grid."""
    return f"−{b:g}" if family.endswith("AD") else f"×{b:g}"


def _levels_label(levels: int, hops: int, window: int) -> str:
    if levels == USUAL_LEVELS:
        return chain.label(MUZHA, hops, window)
    return f"{levels} levels, {hops} hops, window {window}"


def _grid_label(family: str, a: float, b: float, hops: int) -> str:
    return f"grid, {family} {a:g} {b:g}, {hops} hops"


def _final_label(name: str, hops: int, window: int) -> str:
    if name not in FINALISTS:
        return chain.label(MUZHA if name == TABLE_OF_FIVE else name, hops, window)
    return f"finalist, {name}, {hops} hops, window {window}"
