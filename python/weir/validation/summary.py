"""What was found, in words and short texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from weir.base.grid import number
from weir.recordings.judge import FIRST_ACKS, PACKETS, SKIPPED, Kind, Row, score
from weir.recordings.truth import COMPLETION, OVERLAP, REQUEST

TITLES = {
    "steady_goodput_mbps": "goodput",
    OVERLAP: "overlap",
    "mean_cwnd_segments": "cwnd",
    "peak_cwnd_segments": "peak cwnd",
    "mean_srtt_ms": "srtt",
    REQUEST: "request",
    COMPLETION: "completion",
    "retransmits": "retransmits",
    "sawtooth_period_s": "sawtooth",
    PACKETS: "windows",
}
"""A short name of each metric, in the order in which they are shown."""

TITLE = (
    "Ours, and its ratio to the kernel's: ✓ holds, ✗ differs, ? inconclusive, else only reported"
)
"""What stands above the table of all cases."""

UNITS = (
    "goodput in Mbit/s, of a flow's last two thirds and of the time when all flows ran (overlap); "
    "cwnd in segments, srtt and the median request in ms, a file's completion and the sawtooth's "
    "period in s; windows: the "
    f"share of the first {FIRST_ACKS} acknowledgements at which cwnd is the same"
)

KINDS: Mapping[Kind, str] = {
    "deterministic": "Nothing random",
    "drawn": "The kernel draws random numbers",
    "loss": "Random loss",
    "shared": "Flows of one algorithm that come and go",
    "mix": "Two algorithms against each other",
    "requests": "Requests next to a stream",
    "reordering": "Packets that arrive late",
    "packets": "Window by window",
}
"""What is random in cases of each kind, in words."""


def findings(rows: Sequence[Row]) -> Iterator[str]:
    """How many rows hold, by kind of case, and what was not compared."""
    totals = score(rows)
    for kind in KINDS:
        if kind in totals:
            total = totals[kind]
            yield f"{KINDS[kind]}: {held(total)}{_rule(rows, kind)}."
    if "all" in totals:
        yield f"{held(totals['all'], 'judged rows')}."
    unsure = {
        row["case"]: row["note"].partition(";")[0]
        for row in reversed(rows)
        if row["tolerance"] and row["verdict"] is None and row["ours"] is not None
    }
    if unsure:
        reasons_by_case = "; ".join(
            f"{case}: {reason}" for case, reason in reversed(unsure.items())
        )
        yield f"Not judged: {reasons_by_case}."
    reasons = {row["case"]: row["note"].removeprefix(SKIPPED) for row in rows if not row["metric"]}
    if reasons:
        reasons_by_case = "; ".join(f"{case}: {reason}" for case, reason in reasons.items())
        yield f"Skipped: {reasons_by_case}."


def held(total: Mapping[str, int], what: str = "rows") -> str:
    """How many of the judged rows hold, and how many show nothing."""
    inconclusive = f", {total['inconclusive']} inconclusive" if total["inconclusive"] else ""
    return f"{total['held']} of {total['judged']} {what} hold{inconclusive}"


def table(rows: Sequence[Row]) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Headers; per case and flow a line of ours, its ratio to the kernel's, whether it holds."""
    compared = [row for row in rows if row["metric"]]
    metrics = [name for name in TITLES if any(row["metric"] == name for row in compared)]
    lines: list[Sequence[str]] = []
    for case, flow in dict.fromkeys((row["case"], row["flow"]) for row in compared):
        own = {row["metric"]: row for row in compared if (row["case"], row["flow"]) == (case, flow)}
        lines.append((case, str(flow), *(_text(own.get(metric)) for metric in metrics)))
    return ("case", "flow", *(TITLES[name] for name in metrics)), lines


def _text(row: Row | None) -> str:
    if row is None:
        return ""
    has_ratio = row["ratio"] is not None and row["metric"] != PACKETS
    parts = [number(row["ours"]), _ratio(row) if has_ratio else "", mark(row)]
    return " ".join(filter(None, parts))


def _ratio(row: Row) -> str:
    interval = row["ratio_interval"]
    spread = f"±{(interval['hi'] - interval['lo']) / 2:.3f}" if interval else ""
    return f"×{row['ratio']:.3f}{spread}"


def _rule(rows: Sequence[Row], kind: Kind) -> str:
    """What is judged in cases of a kind, and how strictly."""
    judged = {r["metric"]: r["tolerance"] for r in rows if r["kind"] == kind and r["tolerance"]}
    judged.pop(PACKETS, None)
    rules = [f"{TITLES[metric]} {judged[metric]}" for metric in TITLES if metric in judged]
    return f" ({', '.join(rules)})" if rules else ""


def with_interval(row: Row, value: str, digits: int = 3) -> str:
    """A value with half of its interval."""
    text, interval = number(row[value], digits), row[f"{value}_interval"]
    if not interval:
        return text
    return f"{text} ± {number((interval['hi'] - interval['lo']) / 2)}"


def mark(row: Row) -> str:
    """The verdict on a row in one letter; nothing where it is only reported."""
    return {"holds": "✓", "differs": "✗", "inconclusive": "?", None: ""}[row["verdict"]]
