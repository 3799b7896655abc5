"""Laws of goodput at a loss rate, bounded by the link."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import polars as pl

RATE_MBPS = 100.0
RTT_S = 0.1
MSS = 1448
PACKET = 1500
CAPACITY_MBPS = RATE_MBPS * MSS / PACKET
"""Application bytes that the link carries, if every packet is full and none is lost."""

_CUBIC_C = 0.4
_CUBIC_BETA = 0.7


def ceiling(loss: float) -> float:
    """What is left of the link when this part of the packets is lost behind the sender."""
    return CAPACITY_MBPS * (1 - loss)


def reno(loss: float) -> float:
    """Mathis et al. 1997: a window of √(3/2p) segments per round trip."""
    return _bounded(math.sqrt(1.5 / loss), loss)


def cubic(loss: float) -> float:
    """RFC 9438 §5.1: the larger of CUBIC's own window and of the Reno-friendly one."""
    growth = _CUBIC_C * (3 + _CUBIC_BETA) / (4 * (1 - _CUBIC_BETA))
    own = (growth * (RTT_S / loss) ** 3) ** 0.25
    return _bounded(max(own, math.sqrt(1.5 / loss)), loss)


def _bounded(segments: float, loss: float) -> float:
    return min(segments * MSS * 8e-6 / RTT_S, ceiling(loss))


LAWS: Mapping[str, Callable[[float], float]] = {"reno": reno, "cubic": cubic}
"""The controls whose law is known, with it."""


def theory(panel: str, percents: Sequence[float], series: Sequence[str]) -> pl.DataFrame:
    """Curves without intervals, as points of a figure of lines."""
    curves = {"what losses leave": ceiling, **{f"{stack}, law": law for stack, law in LAWS.items()}}
    rows = [
        (panel, name, percent, curves[name](percent / 100), None, None, None)
        for name in series
        for percent in percents
    ]
    names = ("panel", "series", "at", "value", "lo", "hi", "n")
    kinds = (pl.String, pl.String, pl.Float64, pl.Float64, pl.Float64, pl.Float64, pl.Int64)
    return pl.DataFrame(rows, dict(zip(names, kinds, strict=True)), orient="row")
