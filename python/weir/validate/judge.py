"""Ours beside the kernel's: ratios, and whether a row holds.

What is judged, and how strictly, depends on how a case came about:

- *deterministic*: nothing is random on either side, so one run is compared with one recording;
- *drawn*: no random loss, but the kernel draws random numbers (BBR's phase, RED), so our mean over
  several seeds is compared, as strictly, with the mean of the recordings there are;
- *loss*: random loss; means over seeds and recordings, goodput only;
- *mix*: two algorithms against each other; goodput only, alone and during the overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from weir.stats import Estimate, mean_interval, rounded
from weir.validate.truth import KEYS, OVERLAP, Reference, Values

Kind = Literal["deterministic", "drawn", "loss", "mix", "packets"]
KINDS: tuple[Kind, ...] = ("deterministic", "drawn", "loss", "mix", "packets")

PACKETS = "equal_cwnd_share"
"""Of the first acknowledgements, the share at which both have the same window in segments."""

FIRST_ACKS = 1_000

SKIPPED = "skipped: "
"""How the note of a case begins that was not compared."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far ours may be from the kernel's: a share of it or, where that is more, an amount."""

    share: float
    amount: float = 0.0

    def holds(self, ours: float, reference: float) -> bool:
        """Whether ours is near enough."""
        return abs(ours - reference) <= max(self.share * abs(reference), self.amount)

    def __str__(self) -> str:
        share = f"{self.share:.0%}".replace("%", " %")
        return f"{share} or {self.amount:g}" if self.amount else share


_CLOSE = {
    "steady_goodput_mbps": Tolerance(0.02),
    "mean_cwnd_segments": Tolerance(0.05),
    "mean_srtt_ms": Tolerance(0.05),
    "retransmits": Tolerance(0.10, 5),
    "sawtooth_period_s": Tolerance(0.05),
}

TOLERANCES: Mapping[Kind, Mapping[str, Tolerance]] = MappingProxyType(
    {
        "deterministic": _CLOSE,
        "drawn": _CLOSE,
        "loss": {"steady_goodput_mbps": Tolerance(0.10)},
        "mix": {"steady_goodput_mbps": Tolerance(0.15), OVERLAP: Tolerance(0.15)},
    }
)
"""What is judged; every other metric is only reported."""

_LEAST_SHARE = 0.95

_METRICS = (*KEYS, OVERLAP)


def kind(reference: Reference, *, draws: bool) -> Kind:
    """How a case came about."""
    if len({flow.cc for flow in reference.flows}) > 1:
        return "mix"
    if reference.params.get("LOSS"):
        return "loss"
    return "drawn" if draws else "deterministic"


def rows(reference: Reference, of: Kind, ours: Sequence[Sequence[Values]]) -> list[Row]:
    """Every metric of every flow; `ours[run][flow]` are the metrics of our runs."""
    found = []
    for flow in range(len(reference.flows)):
        for metric in _METRICS:
            kernels = [recording[flow].get(metric) for recording in reference.recordings]
            mine = mean_interval(run[flow].get(metric) for run in ours)
            if metric in KEYS or any(value is not None for value in kernels):
                found.append(_row(reference.name, flow, metric, of, mine, kernels))
    return found


def packets_row(case: str, of: Kind, kernels: Sequence[int], ours: Sequence[int]) -> Row:
    """The first acknowledgements of a case, window by window, in segments."""
    theirs = kernels[:FIRST_ACKS]
    pairs = list(zip(ours, theirs, strict=False))
    equal = sum(a == b for a, b in pairs)
    share = equal / len(theirs) if theirs else 0.0
    is_judged = of == "deterministic"
    notes = [f"{equal} of the first {len(theirs)} acknowledgements"]
    for number, (a, b) in enumerate(pairs):
        if a != b:
            notes.append(f"the first that differs is number {number}: {a}, Linux {b}")
            break
    if not is_judged:
        notes.append("reported only: the kernel draws random numbers here")
    return {
        **_named(case, 0, PACKETS, "packets"),
        "ours": rounded(share),
        "reference": 1.0,
        "ratio": rounded(share),
        "holds": share >= _LEAST_SHARE if is_judged else None,
        "tolerance": f"at least {_LEAST_SHARE:g}" if is_judged else None,
        "ours_interval": None,
        "note": "; ".join(notes),
    }


def skipped(name: str, reason: str) -> Row:
    """A case that was not compared, and why."""
    return {
        **_named(name, None, None, None),
        **dict.fromkeys(("ours", "reference", "ratio", "holds", "tolerance", "ours_interval")),
        "note": f"{SKIPPED}{reason}",
    }


def _named(case: str, flow: int | None, metric: str | None, of: Kind | None) -> Row:
    return {"case": case, "flow": flow, "metric": metric, "kind": of}


def _row(
    case: str, flow: int, metric: str, of: Kind, mine: Estimate, kernels: Sequence[float | None]
) -> Row:
    recorded = [value for value in kernels if value is not None]
    ours, reference = mine.mean, mean_interval(recorded).mean
    tolerance = TOLERANCES.get(of, {}).get(metric)
    holds, note = None, ""
    if ours is None and reference is None:
        note = "neither has any"
    elif ours is None or reference is None:
        note = "Linux has none" if reference is None else "ours has none"
        holds = False if tolerance else None
    elif tolerance:
        holds = tolerance.holds(ours, reference)
    counts = [f"ours: mean of {mine.n} seeds"] if mine.n > 1 else []
    if len(recorded) > 1:
        spread = f"{min(recorded):.3g} to {max(recorded):.3g}"
        counts.append(f"Linux: mean of {len(recorded)} recordings, {spread}")
    return {
        **_named(case, flow, metric, of),
        "ours": rounded(ours),
        "reference": rounded(reference),
        "ratio": rounded(ours / reference) if ours is not None and reference else None,
        "holds": holds,
        "tolerance": str(tolerance) if tolerance else None,
        "ours_interval": mine.as_json() if mine.n > 1 else None,
        "note": "; ".join(filter(None, [note, *counts])),
    }


def score(found: Sequence[Row]) -> dict[str, dict[str, int]]:
    """By kind of case, and for all together: how many rows were judged, how many of them hold."""
    totals = {}
    for name in (*KINDS, "all"):
        judged = [r for r in found if r["holds"] is not None and name in (r["kind"], "all")]
        totals[name] = {"held": sum(row["holds"] for row in judged), "judged": len(judged)}
    return {name: total for name, total in totals.items() if total["judged"]}
