"""Samples at the times of recordings of kernels, for one picture of both."""

from __future__ import annotations

import polars as pl

from weir.results.results import Results

_EVERY_S = 0.1
"""How often recordings say what the state was."""


def series(results: Results, run: int, mss: int) -> pl.DataFrame:
    """A run's samples at the times of recordings, with the same definition of goodput."""
    steps = (pl.col("t_s") / _EVERY_S).round()
    is_one = (pl.col("t_s") - steps * _EVERY_S).abs() < _EVERY_S * 1e-3
    before = pl.col("acked_bytes").shift(1, fill_value=0).over("flow")
    rows = results.scan("samples").filter((pl.col("run") == run) & is_one).sort("flow", "t_s")
    return rows.select(
        "flow",
        "t_s",
        (pl.col("cwnd_bytes") / mss).alias("cwnd_segments"),
        "srtt_ms",
        ((pl.col("acked_bytes") - before) * 8e-6 / _EVERY_S).alias("goodput_mbps"),
    ).collect()
