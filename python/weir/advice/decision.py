"""The decision of an advice, from which its sentence, table, picture and commands are made.

| verdict | rule |
|---|---|
| faster | the interval of the gain is above 1 |
| shorter | no option is faster, and one has a shorter delay and nearly the same goodput |
| inconclusive | an option probably gains, but its interval includes 1 |
| none | no option probably gains |

Of the options that are faster, one that takes more than half of a neighbour's goodput is chosen
only if there is no other; then, and if it gains more than the chosen one, it is named as such.
What was measured outranks what is predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from weir.advice.choices import KERNEL
from weir.advice.predictions import Prediction
from weir.modelling.measured import Flow


class Verdict(StrEnum):
    """What an advice comes down to."""

    FASTER = "faster"
    SHORTER = "shorter"
    INCONCLUSIVE = "inconclusive"
    NONE = "none"


class Role(StrEnum):
    """What an option is in an advice."""

    ADVISED = "advised"
    LIKELY = "likely"
    HARMFUL = "gains, but harms a neighbour"
    MEASURED = "in use"
    OTHER = "other"


@dataclass(frozen=True)
class Decision:
    """What is advised, and the options that it was chosen from."""

    verdict: Verdict
    found: tuple[Prediction, ...]
    now: Prediction
    """The measured controller."""
    chosen: Prediction | None
    """What is advised, or what is likely; None if nothing is."""
    harmful: Prediction | None
    """The option with the largest gain that harms a neighbour, if it gains more than `chosen`."""

    def role(self, one: Prediction) -> Role:
        """What `one` of the options is."""
        if one is self.harmful and one is not self.chosen:
            return Role.HARMFUL
        if one is self.chosen:
            return Role.LIKELY if self.verdict is Verdict.INCONCLUSIVE else Role.ADVISED
        return Role.MEASURED if one is self.now else Role.OTHER

    @property
    def is_harmful(self) -> bool:
        """Whether what is advised harms a neighbour."""
        return self.chosen is not None and not _is_fair(self.chosen)


def decide(found: Sequence[Prediction], flow: Flow) -> Decision:
    """Decides between the options, of which one is the measured controller as it is."""
    name = flow.stack.removeprefix("rack/")
    now = next(one for one in found if one.option.name == name)
    others = [one for one in found if one is not now and one.gain is not None]
    faster = _outranking([one for one in others if is_faster(one)], others)
    fair = [one for one in faster if _is_fair(one)]
    most_harmful = max((one for one in faster if not _is_fair(one)), key=gain, default=None)
    if faster:
        chosen = _least_delay(fair or faster)
        gains_more = most_harmful and gain(most_harmful) > _MUCH_MORE * gain(chosen)
        return _decision(Verdict.FASTER, found, now, chosen, most_harmful if gains_more else None)
    shorter = [one for one in others if _is_fair(one) and _is_shorter(one, now)]
    likely = _outranking([one for one in others if is_likely(one)], others)
    if likely:
        fair = [one for one in likely if _is_fair(one)]
        harmful = max((one for one in likely if not _is_fair(one)), key=gain, default=None)
        chosen = _least_delay(fair or likely)
        is_more = harmful and gain(harmful) > _MUCH_MORE * gain(chosen)
        return _decision(Verdict.INCONCLUSIVE, found, now, chosen, harmful if is_more else None)
    if shorter:
        return _decision(Verdict.SHORTER, found, now, _least_delay(shorter), None)
    return _decision(Verdict.NONE, found, now, None, None)


def gain(one: Prediction) -> float:
    """The gain of an option; 0 without one."""
    return one.gain.value if one.gain else 0.0


def is_faster(one: Prediction) -> bool:
    """Whether an option gains for certain, and not only a little."""
    return one.gain is not None and one.gain.low > 1 and one.gain.value >= _RELEVANT


def is_likely(one: Prediction) -> bool:
    """Whether an option probably gains."""
    return gain(one) >= _LIKELY and not is_faster(one)


def _outranking(some: Sequence[Prediction], others: Sequence[Prediction]) -> list[Prediction]:
    """The measured ones of `some` where there are any, or where the best of all was measured."""
    measured = [one for one in some if one.runs]
    best = max((one for one in others if one.runs), key=gain, default=None)
    if best is None:
        return list(some)
    # A prediction counts next to measurements only if it promises much more than the best of them.
    return measured or [one for one in some if gain(one) > _PROMISES * gain(best)]


def _decision(
    verdict: Verdict,
    found: Sequence[Prediction],
    now: Prediction,
    chosen: Prediction | None,
    harmful: Prediction | None,
) -> Decision:
    return Decision(verdict, tuple(found), now, chosen, harmful)


def _is_fair(one: Prediction) -> bool:
    return one.neighbour is None or one.neighbour >= FAIR


def _is_shorter(one: Prediction, now: Prediction) -> bool:
    if one.rtt_ms_p95 is None or now.rtt_ms_p95 is None:
        return False
    saved = now.rtt_ms_p95.value - one.rtt_ms_p95.value
    return saved > max(_RELEVANT_MS, _RELEVANT_DELAY * now.rtt_ms_p95.value) and gain(one) >= CLOSE


def _least_delay(some: Sequence[Prediction]) -> Prediction:
    """Of those with nearly the largest gain, the one with the least delay; Linux's come first."""
    most = max(map(gain, some))
    close = [one for one in some if gain(one) >= CLOSE * most]
    close = [one for one in close if one.option.stack in KERNEL] or close
    return min(close, key=lambda one: one.rtt_ms_p95.value if one.rtt_ms_p95 else 0.0)


CLOSE = 0.95
FAIR = 0.5
_RELEVANT = 1.02
_LIKELY = 1.15
"""A predicted gain from which an interval that includes 1 is worth a sentence."""
_MUCH_MORE = 1.1
_PROMISES = 1.5
_RELEVANT_MS = 1.0
_RELEVANT_DELAY = 0.05
