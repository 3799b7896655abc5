"""Which discipline manages the queue: the one whose simulation repeats the measured flow best.

CoDel, PIE and RED drop while packets wait, before the queue is full. Their losses look random, or
like those of a short queue. The flow is simulated with each of them, and with what the losses
alone suggest.
"""

from __future__ import annotations

import math
from dataclasses import replace

from weir.modelling.measured import COMPARED, Flow
from weir.modelling.path import Path
from weir.modelling.quantity import Quantity
from weir.modelling.simulate import Check, check

DISCIPLINES = ("codel", "pie", "red")
"""What is tried. One flow alone does not tell FQ-CoDel from CoDel."""


def managed(path: Path, flow: Flow, losses: int) -> Path:
    """The path with the discipline of its queue, if one is recognised."""
    if path.policer_mbps or path.steps or losses < _FEWEST_LOSSES:
        return path
    none = Quantity(0.0, 0.0, path.loss.high)
    tried = [replace(path, discipline=name, loss=none, loss_run=None) for name in DISCIPLINES]
    ranked = sorted(((distance(check(one, flow, repeat=_REPEATS)), one) for one in tried), key=_of)
    (least, best), (second, _), *_ = ranked
    plain = distance(check(path, flow, repeat=_REPEATS))
    return best if least < min(_CLOSE, plain / 2, second / 2) else path


def distance(found: Check) -> float:
    """How far a simulation is from the measurement: the norm of the logarithms of its ratios."""
    errors = [found.error(name) for name in COMPARED]
    ratios = [max(1 + error, _LEAST) for error in errors if error is not None]
    return math.sqrt(math.fsum(math.log(ratio) ** 2 for ratio in ratios))


def _of(ranked: tuple[float, Path]) -> float:
    return ranked[0]


_FEWEST_LOSSES = 10
_REPEATS = 3
_CLOSE = 0.2
_LEAST = 1e-3
