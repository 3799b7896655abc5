"""What `weir relay` and `weir link` share: the options of a path, counters, the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from weir._native import ScenarioError, parse_quantity
from weir.cli.help import NETWORK
from weir.errors import InputError, RunError


def asked(help_: str, metavar: str, panel: str = NETWORK) -> Any:
    """An option that asks for something; without it nothing of the kind happens."""
    return typer.Option(metavar=metavar, help=help_, show_default=False, rich_help_panel=panel)


Loss = Annotated[str | None, asked("Share of packets lost, as in 5%.", "SHARE")]
Delay = Annotated[str | None, asked("One-way delay, as in 20ms.", "TIME")]
Rate = Annotated[str | None, asked("Rate in IP bytes, as in 10mbit.", "RATE")]
Queue = Annotated[
    str | None, asked("Queue in front of --rate: 64p (default), 1bdp, 100ms, 64kb.", "SIZE")
]
Jitter = Annotated[str | None, asked("The delay varies by up to this.", "TIME")]
Corrupt = Annotated[str | None, asked("Share that has a bit flipped.", "SHARE")]
Duplicate = Annotated[str | None, asked("Share that arrives twice.", "SHARE")]
Reorder = Annotated[str | None, asked("Share held back by reorder_delay (10ms).", "SHARE")]
Up = Annotated[str, asked("What differs on the way up: key=value,...", "OPTIONS")]
Down = Annotated[str, asked("What differs on the way down: key=value,...", "OPTIONS")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.", rich_help_panel=NETWORK)]


def given(**options: str | None) -> list[tuple[str, str]]:
    """The options that were given, as the native module takes them."""
    return [(key, value) for key, value in options.items() if value is not None]


def seconds(option: str, text: str) -> float:
    """A time in seconds."""
    try:
        return parse_quantity("time", text)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None


def last_second(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[str]:
    """Of each way: packets and bits per second since `before`, what waits, all losses so far."""
    parts = []
    span = now["elapsed_s"] - (before["elapsed_s"] if before else 0.0)
    for way in ("up", "down"):
        new, old = now[way], before[way] if before else dict.fromkeys(now[way], 0)
        packets = (new["sent"] - old["sent"]) / span
        mbit = (new["sent_bytes"] - old["sent_bytes"]) * 8e-6 / span
        lost = new["lost"] + new["queue_dropped"]
        rate = f"{way} {packets:.0f}/s {mbit:.2f} Mbit/s"
        parts.append(f"{rate}, {new['queued']} queued, {lost} lost")
    if now["complaints"]:
        parts.append("NOT AS ASKED")
    return parts


def verdict(report: Mapping[str, Any]) -> str:
    """Whether the path was as asked, in words."""
    return "; ".join(report["complaints"]) or "good: on time, nothing lost but what was asked"


@contextmanager
def input_errors() -> Iterator[None]:
    """Bad input is told as such; what the system refuses is a failure."""
    try:
        yield
    except ScenarioError:
        raise
    except ValueError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise RunError(str(error)) from None
