"""What a stack takes from the neighbour that a comparison puts next to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from weir.base.grid import Grid, cautioned
from weir.comparison.tables import estimate_text
from weir.dynamics.criteria import COARSE_BIN_S
from weir.dynamics.fairness import BySeed, harm_interval
from weir.results import metrics
from weir.scenario.plans import NEIGHBOUR, TESTED
from weir.statistics.intervals import Estimate, mean_interval

if TYPE_CHECKING:
    from weir.results.results import Results

_NOTE = (
    "Share: the part of all goodput. Harm: the part that the neighbour loses of its goodput alone, "
    "seed by seed (Ware et al., HotNets 2019). A stack harms no more than is usual if its harm is "
    "at most that of the neighbour's own kind, in the first line. Fair: within 20 % of each other "
    "in every second for 5 s."
)


def neighbours(results: Results) -> list[dict[str, Any]]:
    """A row per case with a neighbour: `label`, `neighbour`, and three estimates.

    `share` and `harm` are parts of 1, `goodput` is the neighbour's in Mbit/s; `fair` is the time to
    fair shares in bins of 1 s, None if it was not observed. Empty if no case has a neighbour.
    """
    names = results.flows["name"].cast(pl.String)
    if NEIGHBOUR not in names.unique():
        return []
    goodputs = _goodputs(results)
    alone = {
        tuple(case["point"].items()): goodputs.get((case["label"], TESTED), {})
        for case in results.cases
        if (case["label"], NEIGHBOUR) not in goodputs
    }
    rows = []
    for case in results.cases:
        tested, theirs = (goodputs.get((case["label"], name)) for name in (TESTED, NEIGHBOUR))
        if tested is None or theirs is None:
            continue
        other = str(results.flows.filter(names == NEIGHBOUR)["stack"][0])
        solo = alone.get(tuple(case["point"].items()), {})
        waits = [change.converged for change in results.changes(case["label"])]
        rows.append(
            {
                "label": case["label"],
                "neighbour": other,
                "share": _share(tested, theirs),
                "goodput": mean_interval(list(theirs.values()), (0.0, None)),
                "harm": harm_interval(solo, theirs, "more"),
                "fair": waits[0].get(COARSE_BIN_S) if waits else None,
            }
        )
    return rows


def neighbours_grid(results: Results) -> Grid | None:
    """The same as a table for people; None without a neighbour."""
    rows = neighbours(results)
    if not rows:
        return None
    share, goodput = metrics.BY_NAME["utilisation"], metrics.BY_NAME["goodput_mbps"]
    swept = results.swept
    cases = {case["label"]: case for case in results.cases}
    cells = [
        [
            cases[row["label"]]["series"],
            *(cases[row["label"]]["point"].get(key, "") for key in swept),
            estimate_text(row["share"], share),
            estimate_text(row["goodput"], goodput),
            estimate_text(row["harm"], share),
            "–" if row["fair"] is None else row["fair"].short(),
        ]
        for row in rows
    ]
    title = cautioned(f"Next to {rows[0]['neighbour']}", results.caution)
    headers = ["case", *swept, "its share, %", "neighbour, Mbit/s", "harm, %", "fair after"]
    return Grid(title, headers, cells, names=1 + len(swept), note=_NOTE)


def _goodputs(results: Results) -> dict[tuple[str, str], dict[int, float]]:
    """By case and role (`tested`, `neighbour`): the goodput of its flows together, by seed."""
    values = metrics.per_flow(results.flows).join(
        results.runs.select("run", "label", "seed"), on="run"
    )
    role = pl.when(pl.col("name") == NEIGHBOUR).then(pl.lit(NEIGHBOUR)).otherwise(pl.lit(TESTED))
    found: dict[tuple[str, str], dict[int, float]] = {}
    for label, which, seed, mbps in (
        values.group_by("label", role.alias("role"), "seed", maintain_order=True)
        .agg(pl.col("goodput_mbps").sum())
        .iter_rows()
    ):
        found.setdefault((label, which), {})[seed] = mbps
    return found


def _share(tested: BySeed, theirs: BySeed) -> Estimate:
    pairs = [(own, theirs.get(seed)) for seed, own in tested.items()]
    shares = [
        own / (own + other) if own is not None and other is not None and own + other > 0 else None
        for own, other in pairs
    ]
    return mean_interval(shares, (0.0, 1.0))
