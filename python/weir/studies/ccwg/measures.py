"""Runs over time, values that checks ask of them, and comparisons with CUBIC.

`alpha` of DCTCP is in no table. It is made here from the queue's marks as RFC 8257 §3.3 makes it
from the receiver's: one step per round trip of the sender's smoothed RTT.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import polars as pl

from weir.curves import Array, Curve
from weir.fairness import harm
from weir.results import Results
from weir.stats import mean_interval
from weir.studies import Cell
from weir.studies.cells import cell
from weir.studies.contest import Contests
from weir.studies.envelopes import FAIL, INCONCLUSIVE, PASS, Envelope, judged
from weir.studies.schemes import KINDS, present
from weir.studies.texts import Entry, evaluated

__all__ = ["KINDS", "present"]

MSS = 1448
PAYLOAD = MSS / 1500
"""Application bytes per byte of a full packet."""

BAR = "cubic"
BySeed = Mapping[int, float | None]

_SLACK_S = 1e-6
_SLICE_S = 0.1
_GAIN = 1 / 16


@dataclass(frozen=True, eq=False)
class Observed:
    """One run of a bundle: its first flow and the bottleneck, over time."""

    flow: Mapping[str, float | None]
    """The row of table `flows`."""
    samples: pl.DataFrame
    queues: pl.DataFrame
    curve: Curve

    def column(self, name: str, from_s: float, to_s: float) -> Array:
        """A column of `samples` between two instants."""
        is_within = pl.col("t_s").is_between(from_s - _SLACK_S, to_s + _SLACK_S)
        values = self.samples.filter(is_within)[name].drop_nulls()
        return np.asarray(values.cast(pl.Float64).to_numpy(), dtype=np.float64)

    def windows(self, from_s: float, to_s: float) -> Array:
        """Congestion windows between two instants, in segments."""
        return self.column("cwnd_bytes", from_s, to_s) / MSS

    def rates(self, from_s: float, to_s: float, bin_s: float) -> Array:
        """Goodputs of whole bins between two instants, in Mbit/s."""
        count = max(0, math.floor((to_s - from_s) / bin_s + _SLACK_S))
        return self.curve.rates(from_s + bin_s * np.arange(count + 1, dtype=np.float64))

    def phases(self) -> list[tuple[str, float, float]]:
        """What the control was doing from when to when, as the samples saw it."""
        found: list[tuple[str, float, float]] = []
        rows = self.samples.select(pl.col("phase").cast(pl.String), "t_s").iter_rows()
        for phase, time_s in rows:
            if found and found[-1][0] == phase:
                found[-1] = (phase, found[-1][1], time_s)
            else:
                if found:
                    found[-1] = (found[-1][0], found[-1][1], time_s)
                found.append((phase, time_s, time_s))
        return found


def least(values: Array) -> float | None:
    """The smallest of them, if there is any."""
    return float(values.min()) if len(values) else None


def most(values: Array) -> float | None:
    """The largest."""
    return float(values.max()) if len(values) else None


def median(values: Array) -> float | None:
    """The middle one."""
    return float(np.median(values)) if len(values) else None


@lru_cache(maxsize=8)
def alpha(run: Observed) -> tuple[Array, Array]:
    """Times and DCTCP's alpha at them, from 1 at the start (Linux's and ns-3's initial value)."""
    times = run.queues["t_s"].to_numpy()
    marks = run.queues["marks"].cast(float).to_numpy()
    own = run.samples.drop_nulls("srtt_ms")
    sampled, srtts = own["t_s"].to_numpy(), own["srtt_ms"].to_numpy() / 1e3
    now, value = float(sampled[0]), 1.0
    found = [(now, value)]
    while now < times[-1]:
        then = now + float(np.interp(now, sampled, srtts))
        marked = float(np.interp(then, times, marks) - np.interp(now, times, marks))
        packets = float(run.curve.delivered(then) - run.curve.delivered(now)) * 1e6 / 8 / MSS
        share = min(1.0, marked / packets) if packets > 0 else 0.0
        value += _GAIN * (share - value)
        now = then
        found.append((now, value))
    return np.array([time for time, _ in found]), np.array([own for _, own in found])


def alphas(run: Observed, from_s: float, to_s: float = math.inf) -> Array:
    """The alphas between two instants."""
    times, values = alpha(run)
    return values[(times > from_s) & (times < to_s)]


def after_startup(run: Observed) -> float | None:
    """1 if DRAIN follows STARTUP, 0 if something else does."""
    names = [name for name, _, _ in run.phases()]
    if "startup" not in names[:-1]:
        return None
    return float(names[names.index("startup") + 1] == "drain")


def estimate_at_startup(run: Observed) -> float | None:
    """The newest delivery rate as STARTUP ends, over what a link of 10 Mbit/s carries."""
    ends = [end for name, _, end in run.phases() if name == "startup"]
    if not ends:
        return None
    rates = run.column("delivery_mbps", 0.0, ends[0])
    return float(rates[-1]) / (10 * PAYLOAD) if len(rates) else None


def _probes(run: Observed) -> list[tuple[float, float]]:
    return [(begin, end) for name, begin, end in run.phases() if name == "probe_rtt"]


def longest_without(run: Observed) -> float | None:
    """From the end of one PROBE_RTT to the beginning of the next."""
    probes = _probes(run)
    gaps = [later[0] - one[1] for one, later in pairwise(probes)]
    return max(gaps) if gaps else None


def shortest(run: Observed) -> float | None:
    """The shortest PROBE_RTT that ended within the run."""
    whole = [end - begin for begin, end in _probes(run) if end < run.curve.seen_s]
    return min(whole) if whole else None


def after_probe(run: Observed) -> float | None:
    """1 if PROBE_BW follows every PROBE_RTT."""
    phases = run.phases()
    following = [later[0] for one, later in pairwise(phases) if one[0] == "probe_rtt"]
    return float(all(name.startswith("probe_bw") for name in following)) if following else None


def until(run: Observed, share: float, mbps: float, at_s: float, bin_s: float) -> float | None:
    """Seconds after a step until a bin has this share of what the link carries."""
    rates = run.rates(at_s, run.curve.seen_s, bin_s)
    reached = (rates >= share * mbps * PAYLOAD).nonzero()[0]
    return float(reached[0] + 1) * bin_s if len(reached) else None


def over(value: float | None, base: float | None) -> float | None:
    """One over the other, if both are there."""
    return None if value is None or not base else value / base


def probing_windows(run: Observed) -> Array:
    """Congestion windows in PROBE_BW, in packets."""
    own = run.samples.filter(pl.col("phase").cast(pl.String).str.starts_with("probe_bw"))
    return np.asarray(own["cwnd_bytes"].cast(pl.Float64).to_numpy() / MSS, dtype=np.float64)


_VALUES = {
    "PAYLOAD": PAYLOAD,
    "least": least,
    "most": most,
    "median": median,
    "alphas": alphas,
    "after_startup": after_startup,
    "estimate_at_startup": estimate_at_startup,
    "longest_without": longest_without,
    "shortest": shortest,
    "after_probe": after_probe,
    "until": until,
    "over": over,
    "probing_windows": probing_windows,
}
"""What the checks of a description may use, besides `run`."""


def checked(
    results: Results, bundle: Entry, stack: str, reasons: Mapping[str, str]
) -> Iterator[Cell]:
    """Every check of a bundle: a value per run, and the verdict on them."""
    runs = observed(results, f"{bundle['name']}, {stack}")
    for check in bundle["checks"]:
        place = bundle["name"], check["name"], stack, check["unit"]
        values = [evaluated(check["value"], {"run": run, **_VALUES}) for run in runs]
        low, high = (evaluated(check.get(end), {"log": math.log}) for end in ("low", "high"))
        reason = reasons.get(check.get("reason", check.get(f"reason_{stack}")), "")
        yield judged(place, values, Envelope(low, high), reason)


def maximum(results: Results, label: str, from_s: float, to_s: float) -> list[tuple[float, float]]:
    """The largest window in a span of each run that sends then: segments, and when."""
    found = []
    for run in observed(results, label):
        windows = run.windows(from_s, to_s)
        if len(windows):
            times = run.column("t_s", from_s, to_s)
            found.append((float(windows.max()), float(times[int(windows.argmax())])))
    return found


@lru_cache(maxsize=4)
def observed(results: Results, label: str) -> list[Observed]:
    """The first flow of each run of a case."""
    found = []
    for run in results.runs.filter(label=label, status="ok").sort("seed")["run"]:
        own = pl.col("run") == run
        watched = results.links.filter(own, pl.col("monitored"))["link"].min()
        found.append(
            Observed(
                results.flows.filter(own, pl.col("flow") == 0).row(0, named=True),
                results.scan("samples").filter(own, pl.col("flow") == 0).sort("t_s").collect(),
                results.scan("queues").filter(own, pl.col("link") == watched).sort("t_s").collect(),
                results.curves[run][0],
            )
        )
    return found


def considered(contests: Contests, row: str, label: str, buffer: int, stack: str) -> BySeed:
    """What a row of the comparison is about, by seed."""
    case = f"{label}, {stack}"
    if row.startswith("loss"):
        return contests.flow(case, "flow", "loss_ratio")
    if row.startswith("P95"):
        return contests.link(case, "queue_delay_ms_p95")
    return harms(contests, buffer, stack)


def harms(contests: Contests, buffer: int, stack: str) -> BySeed:
    """What a CUBIC flow loses of its goodput beside one of `stack`, by seed."""
    has_alone = contests.flow(f"RFC 9743: alone, {buffer} BDP, cubic", "flow", "goodput_mbps")
    label = f"RFC 9743: beside CUBIC, {buffer} BDP, {stack}"
    has_beside = contests.flow(label, "cubic", "goodput_mbps")
    return {
        seed: harm(own, left, "more")
        for seed, own in has_alone.items()
        if own is not None and (left := has_beside.get(seed)) is not None
    }


def compared(table: str, row: str, stack: str, unit: str, ours: BySeed, bar: BySeed) -> Cell:
    """The difference seed by seed; no worse unless its whole interval is above zero."""
    differences = [
        own - theirs
        for seed in sorted(ours.keys() & bar.keys())
        if (own := ours[seed]) is not None and (theirs := bar[seed]) is not None
    ]
    found = mean_interval(differences)
    holds = None if found.lo is None else found.lo <= 0
    words = {
        True: PASS,
        False: f"{FAIL}: worse than CUBIC, with 95 % confidence",
        None: f"{INCONCLUSIVE}: two seeds or more are required",
    }
    return cell(
        table, row, stack, unit, found, published="not above 0", note=words[holds], holds=holds
    )


def over_time(
    results: Results, bundle: Entry, stacks: Sequence[str], column: str, scale: float = 1.0
) -> pl.DataFrame:
    """`series` (the stack), `t_s` and `value` of the first flow, for the first seed."""
    labels = {f"{bundle['name']}, {stack}": stack for stack in stacks}
    runs = (
        results.runs.filter(pl.col("label").is_in(list(labels)), status="ok")
        .sort("seed")
        .unique("label", keep="first", maintain_order=True)
        .select("run", series=pl.col("label").replace_strict(labels, return_dtype=pl.String))
    )
    slices = (pl.col("t_s") / _SLICE_S - 1e-6).floor() * _SLICE_S + _SLICE_S / 2
    rows = results.scan("samples").filter(pl.col("flow") == 0).join(runs.lazy(), on="run")
    means = rows.group_by("series", t_s=slices, maintain_order=True).agg(
        value=pl.col(column).cast(pl.Float64).mean() * scale
    )
    return means.sort("series", "t_s").drop_nulls("value").collect()
