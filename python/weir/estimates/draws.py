"""Paths drawn from the intervals of a model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weir.estimates.path import Path
from weir.estimates.quantity import Quantity

_SIGMAS = 3.92
"""Standard deviations that a 95 % interval of a normal distribution is wide."""


def draw(path: Path, number: int, seed: int) -> list[Path]:
    """Returns `number` paths whose parameters are random within their intervals."""
    rng = np.random.Generator(np.random.PCG64(seed))
    # One in each part of the range, so that few draws represent it too.
    ranks = _ranks(rng, number)
    rates = _ranks(rng, number) if path.rate_mbps.high is None else ranks
    return [_one(path, rng, *both) for both in zip(ranks, rates, strict=True)]


def _ranks(rng: np.random.Generator, number: int) -> list[float]:
    found: list[float] = ((rng.permutation(number) + rng.uniform(size=number)) / number).tolist()
    return found


def _one(path: Path, rng: np.random.Generator, rank: float, rate_rank: float) -> Path:
    rate = path.rate_mbps
    mbps = _normal(rate, rng) if rate.high is not None else path.rate_at(rate_rank)
    drawn = path.scaled(mbps / rate.value)
    queue = path.queue_bytes
    if queue.high is None:
        size = path.queue_at(rank, mbps)
    else:
        # A part of a packet does not fit.
        size = queue.low + (queue.high - queue.low) * rank
        size = round(size / path.packet_bytes) * path.packet_bytes
    return replace(
        drawn,
        delay_ms=_with(path.delay_ms, _normal(path.delay_ms, rng)),
        queue_bytes=_with(queue, max(size, path.packet_bytes)),
        loss=_with(path.loss, _share(path.loss, rng)),
        policer_mbps=_drawn(path.policer_mbps, rng),
        policer_bytes=_drawn(path.policer_bytes, rng),
        cross=_drawn(path.cross, rng),
        jitter_ms=_drawn(path.jitter_ms, rng),
    )


def _drawn(quantity: Quantity | None, rng: np.random.Generator) -> Quantity | None:
    return None if quantity is None else _with(quantity, _normal(quantity, rng))


def _normal(quantity: Quantity, rng: np.random.Generator) -> float:
    """A normal value with the interval of the quantity, cut off at its ends."""
    high = quantity.value if quantity.high is None else quantity.high
    value = rng.normal(quantity.value, (high - quantity.low) / _SIGMAS)
    return float(np.clip(value, quantity.low, high))


def _share(quantity: Quantity, rng: np.random.Generator) -> float:
    """A share, whose root is normal (Bartlett 1936: a root stabilises the variance of counts).

    No loss seen means no loss: half of the interval above it would be a loss on every draw.
    """
    if quantity.value == 0 or quantity.high is None:
        return quantity.value
    low, middle, high = (np.sqrt(one) for one in (quantity.low, quantity.value, quantity.high))
    root = rng.normal(middle, (high - low) / _SIGMAS)
    return float(np.clip(max(root, 0.0) ** 2, quantity.low, quantity.high))


def _with(quantity: Quantity, value: float) -> Quantity:
    return replace(quantity, value=value)
