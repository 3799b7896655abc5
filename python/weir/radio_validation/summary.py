"""What was found over radio, in words and short texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weir.base.grid import number
from weir.radio_validation.rows import GOODPUT, SHARE, score
from weir.radio_validation.scenes import GROUPS, Group
from weir.recordings.judge import SKIPPED, Row
from weir.validation.summary import held, mark, with_interval

TITLE = "Ours compared with arithmetic, theory and papers: ✓ holds, ✗ differs, ? inconclusive"
"""What stands above the table of all rows."""

UNITS = "frames in us, goodput in kbit/s, shares of one hop's goodput; ± is half of a 95 % interval"

METRICS = {
    "rts_us": "RTS",
    "cts_us": "CTS",
    "ack_us": "ACK",
    "data_us": "data",
    "tcp_ack_us": "TCP ACK",
    "exchange_us": "exchange",
    GOODPUT: "goodput",
    SHARE: "share",
}
"""A short name of each metric."""

HEADINGS: dict[Group, str] = {
    "airtimes": "Frames on the air",
    "stop-and-wait": "A window of one over a chain",
    "fhss": "Saturated stations, Bianchi's FHSS",
    "dsss": "Saturated stations, DSSS",
    "udp-chain": "Datagrams over a chain",
    "tcp-chain": "TCP over a chain",
}

REFERENCES: dict[Group, str] = {
    "airtimes": "arithmetic",
    "stop-and-wait": "arithmetic",
    "fhss": "Bianchi's model",
    "dsss": "Bianchi's model",
    "udp-chain": "1/h, then 1/7 (Li et al.)",
    "tcp-chain": "Holland and Vaidya",
}
"""What the references of each group are called in its picture."""

SOURCES: dict[Group, str] = {
    "airtimes": "Bits over rates, IEEE 802.11b-1999 §18.2. Exchange: from the RTS to the end of "
    "the acknowledgement, three times 200 m of light included.",
    "stop-and-wait": "TCP with a window of one segment: a packet and its acknowledgement cross "
    "each hop once per round. The reference is the sum of these exchanges; backoffs, and what is "
    "left of them when a node soon sends again, come from a game of dice.",
    "fhss": "Bianchi's model of 2000 with his parameters, all at 1 Mbit/s: stations in one spot "
    "that always have a packet of 8184 bits. W is the first window, m how often it doubles.",
    "dsss": "The same model with 802.11's direct sequence: 2 Mbit/s, W = 32, m = 5.",
    "udp-chain": "Li, Blake, De Couto, Lee and Morris, MobiCom 2001: over a long chain a source "
    "that sends as fast as it can gets through a seventh of what one hop carries, where a "
    "schedule could have a quarter.",
    "tcp-chain": "Holland and Vaidya, MobiCom 1999: TCP Reno, 1460-byte packets, a window of 8, "
    "DSR, 2 Mbit/s, means of ten runs, each over that of one hop. Levels are only reported: the "
    "preamble of their frames took less time, and which bytes they counted is not known.",
}
"""Where the reference of each group comes from."""


def findings(rows: Sequence[Row]) -> Iterator[str]:
    """How many rows hold by group, how far ours are, and what was not compared."""
    totals = score(rows)
    for group in GROUPS:
        if group in totals:
            own = [row for row in rows if row["kind"] == group and row["verdict"]]
            tolerances = ", ".join(dict.fromkeys(row["tolerance"] for row in own))
            yield f"{HEADINGS[group]}: {held(totals[group])} ({tolerances}){_farthest(own)}."
    if "all" in totals:
        yield f"{held(totals['all'], 'judged rows')}."
    failed = [row["case"] for row in rows if row["note"].startswith(SKIPPED)]
    if failed:
        yield f"Skipped because the simulation failed: {', '.join(failed)}."


def _farthest(rows: Sequence[Row]) -> str:
    known = [row for row in rows if row["ratio"] is not None]
    if not known:
        return ""
    worst = max(known, key=lambda row: abs(row["ratio"] - 1))
    return f"; the farthest is {worst['case']} with {worst['ratio']:.3f} of the reference"


def table(rows: Sequence[Row]) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Headers, and a line per row."""
    lines: list[Sequence[str]] = [
        (
            row["case"],
            METRICS.get(row["metric"], ""),
            with_interval(row, "ours", 4),
            number(row["reference"], 4),
            "–" if row["ratio"] is None else f"{row['ratio']:.3f}",
            mark(row),
            row["tolerance"] or "",
        )
        for row in rows
    ]
    return ("case", "metric", "ours", "reference", "ratio", "", "tolerance"), lines
