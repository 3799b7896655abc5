"""What each flow has delivered against time: the curve that everything about dynamics is read from.

A sample says how much was delivered since the sample before it, so the sums are exact at the
samples, and straight lines between them stand for what is not known. Bins may have any width and
begin anywhere; only bins narrower than the samples would be invented, and are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from weir.base.errors import InputError

Array = npt.NDArray[np.float64]

_SLACK = 1e-9
"""What floating point may take from a whole number of bins."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One flow of one run."""

    flow: int
    name: str
    times_s: Array
    """Its start, jitter included, and then each of its samples."""
    delivered_mbit: Array
    """Millions of bits delivered in order until then; the first entry is 0."""
    left_s: float | None = None
    """When it ended, if that was before the run did."""
    interval_s: float = field(init=False)
    """The longest time between two of its samples."""

    def __post_init__(self) -> None:
        longest = float(np.max(np.diff(self.times_s), initial=0.0))
        object.__setattr__(self, "interval_s", round(longest, 9))

    @property
    def start_s(self) -> float:
        """When it began."""
        return float(self.times_s[0])

    @property
    def seen_s(self) -> float:
        """Its last sample: what it delivered after that is not known."""
        return float(self.times_s[-1])

    def delivered(self, at_s: Array | float) -> Array:
        """Millions of bits delivered until `at_s`."""
        return np.asarray(np.interp(at_s, self.times_s, self.delivered_mbit))

    def rates(self, edges_s: Array) -> Array:
        """Its goodput between each two neighbouring edges, in Mbit/s."""
        return np.diff(self.delivered(edges_s)) / np.diff(edges_s)

    def rate(self, from_s: float, to_s: float) -> float:
        """Its mean goodput between two instants, in Mbit/s."""
        return float(self.rates(np.array([from_s, to_s]))[0])


def curves(samples: pl.DataFrame, flows: pl.DataFrame) -> dict[int, list[Curve]]:
    """The curves of every run, by its number; a flow without any sample with a value has none.

    Args:
        samples: `run`, `flow`, `t_s` and `goodput_mbps`, as in the table `samples`.
        flows: `run`, `flow`, `name`, `start_s` and `end_s`, as in the table `flows`.
    """
    samples = samples.filter(pl.col("goodput_mbps").is_finite())
    rows = samples.sort("run", "flow", "t_s").partition_by("run", "flow", as_dict=True)
    last = dict(samples.group_by("run").agg(pl.col("t_s").max()).iter_rows())
    found: dict[int, list[Curve]] = {}
    own = flows.select("run", "flow", "name", pl.col("start_s").fill_nan(None), "end_s")
    for run, flow, name, start_s, end_s in own.sort("run", "flow").iter_rows():
        found.setdefault(run, [])
        if start_s is None or (part := rows.get((run, flow))) is None:
            continue
        times = np.concatenate([[start_s], part["t_s"].to_numpy()])
        parts = np.diff(times) * part["goodput_mbps"].to_numpy()
        delivered = np.concatenate([[0.0], np.cumsum(parts)])
        has_left = end_s is not None and end_s < last[run]
        found[run].append(Curve(flow, name, times, delivered, end_s if has_left else None))
    return found


def bins(of: Sequence[Curve], bin_s: float, from_s: float, to_s: float) -> Array:
    """The edges of the whole bins of `bin_s` seconds between two instants.

    Raises:
        InputError: the bins are narrower than the samples.
    """
    interval_s = max((curve.interval_s for curve in of), default=0.0)
    if not bin_s > 0 or bin_s < interval_s * (1 - _SLACK):
        raise InputError(
            f"bin_s={bin_s:g}: a bin must not be shorter than the time between two samples, "
            f"{interval_s:g} s here (measure.sample_interval)"
        )
    count = max(0, int((to_s - from_s) / bin_s + _SLACK))
    return from_s + bin_s * np.arange(count + 1, dtype=np.float64)
