"""How a shared path was divided, and what that did to whom."""

from __future__ import annotations

import math
from collections.abc import Sequence


def jain(rates: Sequence[float], demands: Sequence[float] | None = None) -> float | None:
    """Jain's index (Σ x)² / (n Σ x²): 1 when all are equal, 1/n when one has everything.

    Args:
        rates: what each flow got.
        demands: what each asked for, where they differ; x is then rate / demand.

    Returns:
        None with fewer than two flows, or if none got anything.
    """
    x = rates if demands is None else [r / d for r, d in zip(rates, demands, strict=True)]
    squares = math.fsum(value * value for value in x)
    if len(x) < 2 or squares == 0:
        return None
    return math.fsum(x) ** 2 / (len(x) * squares)


def max_min_ratio(rates: Sequence[float]) -> float | None:
    """The largest over the smallest; None with fewer than two flows or if one got nothing."""
    return max(rates) / min(rates) if len(rates) > 1 and min(rates) > 0 else None
