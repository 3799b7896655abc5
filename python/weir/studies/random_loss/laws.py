"""What theory says of goodput at a given loss rate, bounded by the link."""

from __future__ import annotations

import math

from weir.studies.random_loss.experiment import MSS, PACKET, RATE_MBPS, RTT_S

_CUBIC_C = 0.4
_CUBIC_BETA = 0.7

CAPACITY_MBPS = RATE_MBPS * MSS / PACKET
"""Application bytes that the link carries, if every packet is full and none is lost."""


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


LAWS = {"reno": reno, "cubic": cubic}
"""The controls whose law is known, with it."""

SOURCES = {
    "reno": "Mathis et al. 1997, √(3/2p)/RTT, at most the link",
    "cubic": "RFC 9438 §5.1, at most the link",
}
