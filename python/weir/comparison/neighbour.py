"""What a stack takes from the neighbour that a comparison puts next to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from weir.base.grid import Grid, cautioned
from weir.comparison.contrasts import (
    RELEVANT,
    Contrast,
    Pair,
    compared_cases,
    corrected,
)
from weir.comparison.tables import difference_text, estimate_text
from weir.dynamics.criteria import COARSE_BIN_S
from weir.dynamics.fairness import BySeed, harm
from weir.results import metrics
from weir.scenario.plans import NEIGHBOUR, TESTED
from weir.statistics.intervals import Estimate, mean_interval, paired_difference

if TYPE_CHECKING:
    from weir.results.results import Results

NOTE = (
    "Share: the part of all goodput. Harm: the part that the neighbour loses of its goodput alone, "
    "seed by seed (Ware et al., HotNets 2019). A stack harms no more than is usual if its harm is "
    "at most that of the neighbour's own kind, in the first line. Fair: within 20 % of each other "
    "in every second for 5 s."
)
HEADERS = (
    "its share, %",
    "neighbour, Mbit/s",
    "harm, %",
    "more than its own kind, points",
    "fair after",
)
"""Of the columns after the case and its swept keys."""

_HARM = metrics.Metric(
    "harm",
    "harm",
    "%",
    "the part that the neighbour loses of its goodput alone",
    "less",
    "metrics",
    pl.lit(None),
    bounds=(None, 1.0),
    scale=100.0,
)

Row = dict[str, Any]


def neighbours(results: Results, relevant: float = RELEVANT) -> list[Row]:
    """A row per case with a neighbour: `label`, `series`, `point`, `neighbour`, and estimates.

    `share` and `harm` are parts of 1, `goodput` is the neighbour's in Mbit/s. `more` compares the
    harm with that of the neighbour's own kind; it is None for the own kind. `fair` is the time to
    fair shares in bins of 1 s, None if it was not observed. Empty if no case has a neighbour.
    """
    names = results.flows["name"].cast(pl.String)
    if NEIGHBOUR not in names.unique():
        return []
    goodputs = _goodputs(results)
    shown = compared_cases(results.cases)
    alone = {
        tuple(case["point"].items()): goodputs.get((case["label"], TESTED), {})
        for case in results.cases
        if case not in shown
    }
    rows = []
    harms: dict[str, BySeed] = {}
    for case in shown:
        tested, theirs = (goodputs.get((case["label"], name)) for name in (TESTED, NEIGHBOUR))
        if tested is None or theirs is None:
            continue
        harms[case["label"]] = _harm(alone.get(tuple(case["point"].items()), {}), theirs)
        waits = [change.converged for change in results.changes(case["label"])]
        rows.append(
            {
                **{key: case[key] for key in ("label", "series", "point")},
                "neighbour": _neighbour(case),
                "share": _share(tested, theirs),
                "goodput": mean_interval(list(theirs.values()), (0.0, None)),
                "harm": mean_interval(harms[case["label"]].values(), _HARM.bounds),
                "more": None,
                "fair": waits[0].get(COARSE_BIN_S) if waits else None,
            }
        )
    _compare(rows, harms, relevant)
    return rows


def _compare(rows: Sequence[Row], harms: Mapping[str, BySeed], relevant: float) -> None:
    """Sets `more` of every row but those of the neighbour's own kind, the first at each point."""
    own: dict[tuple[tuple[str, str], ...], Row] = {}
    pairs = []
    for row in rows:
        first = own.setdefault(tuple(row["point"].items()), row)
        if first is not row:
            pairs.append((row, first))
    tries = [
        Pair(
            row,
            first,
            _HARM,
            paired_difference(harms[row["label"]], harms[first["label"]]),
            first["harm"].mean,
        )
        for row, first in pairs
    ]
    for (row, _), contrast in zip(pairs, corrected(tries, relevant), strict=True):
        row["more"] = contrast


def sentences(rows: Sequence[Row]) -> Iterator[str]:
    """What a stack does to its neighbour, in words: one sentence per case, or two."""
    of_others = [row for row in rows if row["more"] is not None]
    for row in of_others or rows:
        where = "".join(f", {key} {value}" for key, value in row["point"].items())
        share = estimate_text(row["share"], metrics.BY_NAME["utilisation"])
        taken = estimate_text(row["harm"], _HARM)
        yield (
            f"{row['series']} next to {row['neighbour']}{where}: it has {share} % of all goodput, "
            f"and the neighbour loses {taken} % of what it has alone{_reading(row)}."
        )


def _reading(row: Row) -> str:
    """Whether the harm is more than is usual."""
    more: Contrast | None = row["more"]
    if more is None:
        return ""
    if more.verdict == "too few repeats":
        return "; one repeat cannot show that this is more than next to its own kind"
    difference = more.difference.estimate
    points = f"{difference_text(difference, _HARM)} points"
    if more.is_relevant is False:
        return f", as next to its own kind ({points}: no relevant difference)"
    if more.verdict == "significant":
        word = "more" if (difference.mean or 0.0) > 0 else "less"
        return f", {word} than next to its own kind ({points}, significant)"
    return f"; whether more than next to its own kind ({points}) is {more.inconclusive}"


def neighbours_grid(results: Results, rows: Sequence[Row]) -> Grid | None:
    """The same as a table for people; None without a neighbour."""
    if not rows:
        return None
    swept = results.swept
    cells = [
        [row["series"], *(row["point"].get(key, "") for key in swept), *texts(row)] for row in rows
    ]
    title = cautioned(f"Next to {rows[0]['neighbour']}", results.caution)
    return Grid(title, ["case", *swept, *HEADERS], cells, names=1 + len(swept), note=NOTE)


def texts(row: Row) -> list[str]:
    """The cells of a row, as in `HEADERS`."""
    more: Contrast | None = row["more"]
    return [
        estimate_text(row["share"], metrics.BY_NAME["utilisation"]),
        estimate_text(row["goodput"], metrics.BY_NAME["goodput_mbps"]),
        estimate_text(row["harm"], _HARM),
        "–" if more is None else difference_text(more.difference.estimate, _HARM),
        "–" if row["fair"] is None else row["fair"].short(),
    ]


def _neighbour(case: Mapping[str, Any]) -> str:
    flows = case["scenario"]["flow"]
    return next(str(flow["stack"]) for flow in flows if flow.get("name") == NEIGHBOUR)


def _harm(solo: BySeed, theirs: BySeed) -> dict[int, float | None]:
    pairs = {seed: (solo[seed], theirs[seed]) for seed in sorted(solo.keys() & theirs.keys())}
    return {
        seed: None if alone is None or shared is None else harm(alone, shared, "more")
        for seed, (alone, shared) in pairs.items()
    }


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
