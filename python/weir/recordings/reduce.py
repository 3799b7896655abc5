"""The metrics of a flow from our samples, defined as those of the recordings are.

Both sides are sampled every 10 ms. The steady part of a flow is the last two thirds of its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from weir.recordings.truth import OVERLAP, Flow, Values

_REDUCED = ("cwr", "recovery", "loss")
_HALF_A_SAMPLE_S = 5e-7
"""Tolerance of times, for rounding of binary fractions."""


def reduce(samples: Sequence[pl.DataFrame], flows: Sequence[Flow], mss: int) -> list[Values]:
    """The metrics of each flow of one run, from its rows of table `samples`."""
    found = [_alone(rows, flow, mss) for rows, flow in zip(samples, flows, strict=True)]
    if len(flows) > 1:
        begin, end = max(f.start_s for f in flows), min(f.end_s for f in flows)
        first = begin + (end - begin) / 4
        for values, rows in zip(found, samples, strict=True):
            values[OVERLAP] = _goodput_mbps(_between(rows, first, end))
    return list(found)


def _alone(rows: pl.DataFrame, flow: Flow, mss: int) -> dict[str, float | None]:
    steady = _between(rows, flow.start_s + flow.duration_s / 3, flow.end_s)
    cwnd = steady["cwnd_bytes"] / mss
    return {
        "steady_goodput_mbps": _goodput_mbps(steady),
        "mean_cwnd_segments": _number(cwnd.mean()),
        "peak_cwnd_segments": _number(cwnd.max()),
        "mean_srtt_ms": _number(steady["srtt_ms"].mean()),
        "retransmits": _number(rows["retransmits"].max()),
        "sawtooth_period_s": _period_s(rows, flow.start_s + flow.duration_s / 6),
    }


def _period_s(rows: pl.DataFrame, since_s: float) -> float | None:
    """The mean time between two reductions.

    A reduction is a sample at which the sender has left open or disorder for CWR, recovery or loss.
    Those of the first sixth of the flow's time, its slow start, do not count.
    """
    reduced = rows["state"].is_in(_REDUCED)
    begins = rows.filter(reduced & ~reduced.shift(1, fill_value=True))["t_s"]
    times = [time for time in begins if time >= since_s - _HALF_A_SAMPLE_S]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return sum(gaps) / len(gaps) if gaps else None


def _goodput_mbps(rows: pl.DataFrame) -> float | None:
    """Bytes acknowledged between the first and the last sample."""
    if rows.height < 2:
        return None
    acked, times = rows["acked_bytes"], rows["t_s"]
    return float((acked[-1] - acked[0]) * 8e-6 / (times[-1] - times[0]))


def _between(rows: pl.DataFrame, first_s: float, last_s: float) -> pl.DataFrame:
    margin = _HALF_A_SAMPLE_S
    return rows.filter(pl.col("t_s").is_between(first_s - margin, last_s + margin))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
