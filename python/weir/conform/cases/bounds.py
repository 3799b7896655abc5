"""Bounds that a number must keep, and the verdicts on it."""

from __future__ import annotations

from dataclasses import dataclass

PASS, FAIL, INCONCLUSIVE = "pass", "fail", "inconclusive"
NOT_APPLICABLE, REPORTED = "not applicable", "reported"
"""Further verdicts: the case does not concern the stack, or there is no bound."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a value must lie between; None leaves a side open."""

    low: float | None = None
    high: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a value is within, the bounds included."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    @property
    def is_open(self) -> bool:
        """Whether it has no bound."""
        return self.low is None and self.high is None

    @property
    def text(self) -> str:
        """In words, with all digits, so that a value near a bound can be judged by eye."""
        if self.low is None:
            return "none" if self.high is None else f"at most {self.high:g}"
        if self.high is None:
            return f"at least {self.low:g}"
        return f"{self.low:g} to {self.high:g}"
