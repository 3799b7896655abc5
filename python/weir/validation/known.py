"""What is known of cases whose rows differ, or stay inconclusive: a sentence for their notes."""

from __future__ import annotations

from fnmatch import fnmatchcase

from weir.recordings.judge import Row

_CHAOS = "who backs off in an overflow depends on single packets, also between two runs of Linux"
_BBR = "Linux draws the phase of BBR's probing, from numbers that are not ours"

_KNOWN = (
    ("10m-?-flow-bbr", f"{_BBR}; {_CHAOS}"),
    ("10m-cubic-bbr", f"{_BBR}; {_CHAOS}"),
    ("10m-?-flow-*", _CHAOS),
    ("10m-reno-cubic", _CHAOS),
    (
        "10m-rpc-bbr",
        f"{_BBR}; over 5 seeds a median request takes 0.90 of its time in Linux, why is not known",
    ),
    ("10m-pie-reno", "the five recordings of Linux have sawteeth of 1.68 to 1.89 s"),
    ("*-bbr", _BBR),
)
"""By the names of cases, the first that matches."""


def explained(row: Row) -> Row:
    """The row, with what is known of its case in its note if it does not hold."""
    if row["verdict"] not in ("differs", "inconclusive"):
        return row
    reason = next((text for pattern, text in _KNOWN if fnmatchcase(row["case"], pattern)), "")
    return {**row, "note": "; ".join(filter(None, [row["note"], reason]))}
