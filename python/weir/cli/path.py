"""Options, counters and verdict of a path, for `weir relay` and `weir link`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from weir._native import ScenarioError, parse_quantity
from weir.cli.help import NETWORK
from weir.errors import InputError, RunError


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


def given(**options: str | None) -> list[tuple[str, str]]:
    """Returns the options given, in the form of the native module."""
    return [(key, value) for key, value in options.items() if value is not None]


def seconds(name: str, text: str) -> float:
    """Returns the value of an option in seconds."""
    try:
        return parse_quantity("time", text)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None


def last_second(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[str]:
    """Per direction: packets and bits per second since `before`, queue length, total losses."""
    parts = []
    span = now["elapsed_s"] - (before["elapsed_s"] if before else 0.0)
    for way in ("up", "down"):
        new, old = now[way], before[way] if before else dict.fromkeys(now[way], 0)
        packets = (new["sent"] - old["sent"]) / span
        mbit = (new["sent_bytes"] - old["sent_bytes"]) * 8e-6 / span
        lost = new["lost"] + new["queue_dropped"]
        rate = f"{way} {packets:.0f}/s {mbit:.2f} Mbit/s"
        parts.append(f"{rate}, {new['queued']} queued, {lost} lost")
    if now["warnings"]:
        parts.append("NOT AS CONFIGURED")
    return parts


def verdict(report: Mapping[str, Any]) -> str:
    """Says whether the path was as configured."""
    return "; ".join(report["warnings"]) or "good: on time, no unintended loss"


@contextmanager
def input_errors() -> Iterator[None]:
    """Turns errors of the native module into input errors and run errors."""
    try:
        yield
    except ScenarioError:
        raise
    except ValueError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise RunError(str(error)) from None
