"""Flows whose policer is known, although what is read of them does not show it.

`weir test` finds policers from counters that are finer than its samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

Policer = Sequence[float | int | None]
"""The values of `COLUMNS`."""
COLUMNS = ("policer_mbps", "policer_burst_bytes", "policer_bucket_bytes")
_LIMIT = "policer"
_BELOW = ("path-capacity", "congestion", "random-loss")
"""Limits whose rules come after that of a policer."""


def with_policers(
    connections: pl.DataFrame, slices: pl.DataFrame, policers: Mapping[str, Policer]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both tables with the policers of flows, which limit from the first loss to the last."""
    rows = connections.to_dicts()
    for row in rows:
        policer = policers.get(_flow(row))
        if policer is None:
            continue
        row |= dict(zip(COLUMNS, policer, strict=True))
        own = pl.col("connection") == row["connection"]
        lossy = slices.filter(own & (pl.col("retransmits") > 0))["t_s"]
        is_within = own & pl.col("t_s").is_between(lossy.min(), lossy.max())
        for limit in _BELOW:
            of_limit = slices.filter(own & (pl.col("limit") == limit))
            _move(row, limit, _time(of_limit.filter(is_within)), _time(of_limit))
        is_moved = is_within & pl.col("limit").is_in(_BELOW)
        named = pl.when(is_moved).then(pl.lit(_LIMIT)).otherwise(pl.col("limit"))
        slices = slices.with_columns(limit=named)
        shares = {name: row[_column(name)] for name in (row["limit"], _LIMIT)}
        row["limit"] = max(shares, key=lambda name: shares[name])
    return pl.DataFrame(rows, schema=connections.schema), slices


def _flow(row: Mapping[str, Any]) -> str:
    """The name of a flow, from the title of its log: `…: NAME, STACK`."""
    return str(row["client"]).rpartition(": ")[2].partition(",")[0]


def _move(row: dict[str, Any], limit: str, moved_s: float, whole_s: float) -> None:
    """Gives the policer the share of another limit's time."""
    if whole_s > 0:
        share = row[_column(limit)] * moved_s / whole_s
        row[_column(limit)] -= share
        row[_column(_LIMIT)] += share


def _time(slices: pl.DataFrame) -> float:
    return float((slices["end_s"] - slices["t_s"]).sum())


def _column(limit: str) -> str:
    return f"limited_{limit.replace('-', '_')}"
