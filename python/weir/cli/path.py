"""Counters and verdict of a path, for `weir relay` and `weir link`."""

from __future__ import annotations

from typing import Literal

from weir.links.emulation import PathReport

DIRECTIONS: tuple[Literal["up"], Literal["down"]] = ("up", "down")
"""Keys of a report with the counters of a direction."""


def last_second(now: PathReport, before: PathReport | None) -> list[str]:
    """Per direction: packets and bits per second since `before`, queue length, total losses."""
    parts = []
    span = now["elapsed_s"] - (before["elapsed_s"] if before else 0.0)
    for direction in DIRECTIONS:
        new, old = now[direction], before[direction] if before else None
        sent, sent_bytes = (old["sent"], old["sent_bytes"]) if old else (0, 0)
        packets = (new["sent"] - sent) / span
        mbit = (new["sent_bytes"] - sent_bytes) * 8e-6 / span
        lost = new["lost"] + new["queue_dropped"]
        rate = f"{direction} {packets:.0f}/s {mbit:.2f} Mbit/s"
        parts.append(f"{rate}, {new['queued']} queued, {lost} lost")
    if now["warnings"]:
        parts.append("NOT AS CONFIGURED")
    return parts


def verdict(report: PathReport) -> str:
    """Says whether the path was as configured."""
    return "; ".join(report["warnings"]) or "good: on time, no unintended loss"
