"""Options, counters and verdict of a path, for `weir relay` and `weir link`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from weir.base.options import NETWORK
from weir.links.emulation import PathReport


def option(help_: str, metavar: str, panel: str = NETWORK) -> Any:
    """Declares an option without a default."""
    return typer.Option(metavar=metavar, help=help_, show_default=False, rich_help_panel=panel)


Loss = Annotated[str | None, option("Share of packets lost, as in 5%.", "SHARE")]
Delay = Annotated[str | None, option("One-way delay, as in 20ms.", "TIME")]
Rate = Annotated[str | None, option("Rate of IP packets, as in 10mbit.", "RATE")]
Queue = Annotated[
    str | None, option("Queue capacity, with --rate: 64p (default), 1bdp, 100ms, 64kb.", "SIZE")
]
Jitter = Annotated[str | None, option("Largest random variation of the delay.", "TIME")]
Corrupt = Annotated[str | None, option("Share of packets with a flipped bit.", "SHARE")]
Duplicate = Annotated[str | None, option("Share of packets duplicated.", "SHARE")]
Reorder = Annotated[
    str | None, option("Share of packets delayed by reorder_delay (10ms).", "SHARE")
]
Up = Annotated[str, option("Options of the direction up: key=value,...", "OPTIONS")]
Down = Annotated[str, option("Options of the direction down: key=value,...", "OPTIONS")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.", rich_help_panel=NETWORK)]

DIRECTIONS: tuple[Literal["up"], Literal["down"]] = ("up", "down")
"""Keys of a report with the counters of a direction."""


def last_second(now: PathReport, before: PathReport | None) -> list[str]:
    """Per direction: packets and bits per second since `before`, queue length, total losses."""
    parts = []
    span = now["elapsed_s"] - (before["elapsed_s"] if before else 0.0)
    for way in DIRECTIONS:
        new = now[way]
        sent, sent_bytes = (before[way]["sent"], before[way]["sent_bytes"]) if before else (0, 0)
        packets = (new["sent"] - sent) / span
        mbit = (new["sent_bytes"] - sent_bytes) * 8e-6 / span
        lost = new["lost"] + new["queue_dropped"]
        rate = f"{way} {packets:.0f}/s {mbit:.2f} Mbit/s"
        parts.append(f"{rate}, {new['queued']} queued, {lost} lost")
    if now["warnings"]:
        parts.append("NOT AS CONFIGURED")
    return parts


def verdict(report: PathReport) -> str:
    """Says whether the path was as configured."""
    return "; ".join(report["warnings"]) or "good: on time, no unintended loss"
