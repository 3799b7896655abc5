"""What a path does to the traffic class of packets: DSCP (RFC 2474) and ECN (RFC 3168).

Before a load, small datagrams with different marks go to the server, which returns what it saw and
sends its answer with the same mark. So each direction has its own result. A mark is the byte of the
IP header: DSCP in the upper six bits, ECN in the lower two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ECN_NAMES = {0: "Not-ECT", 1: "ECT(1)", 2: "ECT(0)", 3: "CE"}
_DSCP_NAMES = {0: "CS0", 1: "LE", 8: "CS1", 34: "AF41", 40: "CS5", 45: "NQB", 46: "EF"}

MARKS = (0, 2, 1, 3, *(dscp << 2 for dscp in _DSCP_NAMES if dscp))
"""Each codepoint of ECN without DSCP, and each DSCP without ECN."""

_LOST_BELOW = 0.5
"""A mark is called lost if less than this share of its probes arrives, and more of the unmarked."""


@dataclass(frozen=True, slots=True)
class MarkCount:
    """Probes of one mark in one direction that arrived in one way."""

    direction: str
    mark: int
    sent: int
    """All probes of this mark in this direction."""
    count: int
    seen: int | None
    """The mark that arrived; None of those that did not."""


def counted(
    marked: Sequence[int],
    seen: Mapping[int, tuple[int, int]],
    at_server: Mapping[int, Mapping[int, int]],
) -> list[MarkCount]:
    """What arrived of all probes of marks.

    Args:
        marked: The marks that the client sent, by number.
        seen: By number, the mark at the server and that of the answer.
        at_server: By mark, the marks that arrived at the server, each with a count.
    """
    sent = Counter(marked)
    found = []
    for mark in MARKS:
        if mark not in sent:
            continue
        up = Counter(dict(at_server.get(mark, {})))
        down = Counter(back for number, (_, back) in seen.items() if marked[number] == mark)
        found += _rows("up", mark, sent[mark], up)
        found += _rows("down", mark, up.total(), down)
    return found


def name(mark: int) -> str:
    """The name of a mark, as in `EF` or `ECT(0)`; both parts where both are set."""
    dscp, ecn = mark >> 2, mark & 3
    label = _DSCP_NAMES.get(dscp, f"DSCP {dscp}")
    if not ecn:
        return label if dscp else _ECN_NAMES[0]
    return f"{label} {_ECN_NAMES[ecn]}" if dscp else _ECN_NAMES[ecn]


def verdict(counts: Sequence[MarkCount], direction: str, *, ecn: bool) -> str | None:
    """What a direction does to ECN, or to DSCP: `kept`, `cleared`, or what becomes of each mark.

    None where no unmarked probe arrived.
    """
    if _usual(counts, direction, 0) is None:
        return None
    marks = [mark for mark in MARKS if mark and (mark < 4) == ecn]
    changes = {}
    for mark in marks:
        if any(each.mark == mark and each.direction == direction for each in counts):
            usual = _usual(counts, direction, mark)
            if usual != mark:
                changes[mark] = usual
    if not changes:
        return "kept"
    if all(usual == 0 for usual in changes.values()):
        cleared = ", ".join(map(name, changes))
        return "cleared" if len(changes) == len(marks) else f"{cleared} cleared"
    return ", ".join(
        f"{name(mark)} lost" if usual is None else f"{name(mark)} to {name(usual)}"
        for mark, usual in changes.items()
    )


def _usual(counts: Sequence[MarkCount], direction: str, mark: int) -> int | None:
    """How most probes of a mark arrive; None if fewer than half of them do."""
    own = [each for each in counts if each.direction == direction and each.mark == mark]
    arrived = [each for each in own if each.seen is not None]
    if not arrived or sum(each.count for each in arrived) < _LOST_BELOW * own[0].sent:
        return None
    return max(arrived, key=lambda each: each.count).seen


def _rows(direction: str, mark: int, sent: int, seen: Counter[int]) -> list[MarkCount]:
    rows = [MarkCount(direction, mark, sent, count, value) for value, count in seen.items()]
    lost = sent - seen.total()
    return [*rows, MarkCount(direction, mark, sent, lost, None)] if lost > 0 else rows
