"""What drops packets before the queue is full: what repeats the measured flow best in simulation.

CoDel, PIE and RED drop while packets wait, a policer those beyond its rate. Their losses look
random, or like those of a short queue. The flow is simulated with each of them, and with what the
losses alone suggest.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from weir.estimates.fit import bucket
from weir.estimates.packets import Packets
from weir.estimates.path import Path
from weir.estimates.quantity import Quantity
from weir.modelling.measured import COMPARED, Flow
from weir.modelling.simulate import Check, check

DISCIPLINES = ("codel", "pie", "red")
"""What is tried. One flow alone does not tell FQ-CoDel from CoDel."""


def managed(path: Path, flow: Flow, packets: Packets) -> Path:
    """The path with the discipline of its queue, or a policer, if one is recognised."""
    if path.policer_mbps or path.over_time or packets.lost.sum() < _FEWEST_LOSSES:
        return path
    own = replace(path, loss=Quantity(0.0, 0.0, path.loss.high), loss_run=None)
    tried = [replace(own, discipline=name) for name in DISCIPLINES]
    if not _waits_before_losses(packets):
        rate, burst = bucket(packets)
        tried.append(replace(own, policer_mbps=rate, policer_bytes=burst))
    ranked = sorted(((distance(check(one, flow, repeat=_REPEATS)), one) for one in tried), key=_of)
    (least, best), (second, _), *_ = ranked
    plain = distance(check(path, flow, repeat=_REPEATS))
    return best if least < min(_CLOSE, plain / 2, second / 2) else path


def _waits_before_losses(packets: Packets) -> bool:
    """Whether a queue was there when packets were lost: a policer has none."""
    waits = packets.wait_before(np.flatnonzero(packets.lost), _NEAR)
    known = waits[~np.isnan(waits)]
    return not known.size or float(np.median(known)) > _NO_WAIT * packets.least_rtt_s


def distance(found: Check) -> float:
    """How far a simulation is from the measurement: the norm of the logarithms of its ratios."""
    errors = [found.error(name) for name in COMPARED]
    ratios = [max(1 + error, _LEAST) for error in errors if error is not None]
    return math.sqrt(math.fsum(math.log(ratio) ** 2 for ratio in ratios))


def _of(ranked: tuple[float, Path]) -> float:
    return ranked[0]


_FEWEST_LOSSES = 10
_NEAR = 64
_NO_WAIT = 0.1
_REPEATS = 3
_CLOSE = 0.2
_LEAST = 1e-3
