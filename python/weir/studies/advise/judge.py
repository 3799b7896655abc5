"""Whether an advice was right, by what the controllers really got.

| advice | right | wrong |
|---|---|---|
| faster | the advised one gets more than the one in use, no other half as much again | else |
| shorter | its P95 is shorter, it gets 95 % as much, and no controller gains a tenth | else |
| none | no controller gains a tenth | else |
| inconclusive, refused | never | never |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from weir.advice.decision import CLOSE, Verdict

_RELEVANT = 1.1
"""A gain that an advice must not miss."""
_MUCH_MORE = 1.5


class Judgement(StrEnum):
    """What an advice was."""

    RIGHT = "right"
    INCONCLUSIVE = "inconclusive"
    WRONG = "wrong"


@dataclass(frozen=True)
class Truth:
    """What a controller got on the path."""

    goodput_mbps: float
    rtt_ms_p95: float


def judge(
    verdict: Verdict | None, stack: str | None, now: str, truths: Mapping[str, Truth]
) -> Judgement:
    """Judges the advice to use `stack` in place of `now`; without a verdict it was refused."""
    gains = {name: one.goodput_mbps / truths[now].goodput_mbps for name, one in truths.items()}
    best = max(gains.values())
    if verdict is None or verdict is Verdict.INCONCLUSIVE:
        return Judgement.INCONCLUSIVE
    if verdict is Verdict.NONE or stack is None:
        return _of(best < _RELEVANT)
    if verdict is Verdict.FASTER:
        return _of(gains[stack] > 1 and best < _MUCH_MORE * gains[stack])
    is_shorter = truths[stack].rtt_ms_p95 < truths[now].rtt_ms_p95
    return _of(is_shorter and gains[stack] >= CLOSE and best < _RELEVANT)


def _of(is_right: bool) -> Judgement:
    return Judgement.RIGHT if is_right else Judgement.WRONG
