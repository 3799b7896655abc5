"""An estimated value with its 95 % interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from weir.statistics import beta
from weir.statistics.intervals import LEVEL, rounded


@dataclass(frozen=True, slots=True)
class Quantity:
    """An estimate; without `high` it is a lower bound."""

    value: float
    low: float
    high: float | None
    most: float | None = None
    """Of a lower bound, the largest value that may still be true."""

    def as_json(self) -> dict[str, Any]:
        """The form of `--json`."""
        high = None if self.is_unbounded else rounded(self.high)
        found = {"value": rounded(self.value), "lo": rounded(self.low), "hi": high}
        return found if self.most is None else {**found, "most": rounded(self.most)}

    def text(self, digits: int = 3, scale: float = 1.0) -> str:
        """The estimate and its interval for people."""
        value, low = (f"{one * scale:.{digits}g}" for one in (self.value, self.low))
        if self.high is None:
            most = "" if self.most is None else f", taken up to {self.most * scale:.{digits}g}"
            return f"at least {value}{most}"
        if self.is_unbounded:
            return f"{value} (one run)"
        return f"{value} ({low} to {self.high * scale:.{digits}g})"

    @property
    def is_unbounded(self) -> bool:
        """Whether it is a single value, of which nothing says how much it varies."""
        return self.high == math.inf


def share(count: int, total: int) -> Quantity:
    """A share of `total` with the interval of Clopper and Pearson (Biometrika 1934)."""
    tail = (1 - LEVEL) / 2
    low = beta.quantile(tail, count, total - count + 1) if count else 0.0
    high = beta.quantile(1 - tail, count + 1, total - count) if count < total else 1.0
    return Quantity(count / total if total else 0.0, low, high)
