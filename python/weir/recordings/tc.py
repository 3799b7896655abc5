"""Values as `tc` reads them: `1600` is bytes, `kb` is 1024 bytes, a bare time is microseconds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from weir.base.errors import WeirError


class UnhostedError(WeirError):
    """Why a case cannot run in the simulator."""


def rate(text: str) -> int:
    """A rate in bits per second."""
    return round(scaled("rate", text, _RATES))


def size(text: str) -> int:
    """A size in bytes."""
    return round(scaled("size", text, _SIZES))


def time(text: str) -> str:
    """A time in the words of a scenario."""
    return f"{nanoseconds(text)}ns"


def nanoseconds(text: str) -> int:
    """A time in nanoseconds."""
    return round(scaled("time", text, _TIMES))


def scaled(what: str, text: str, units: Mapping[str, int]) -> float:
    """A number with one of `units`.

    Raises:
        UnhostedError: it is none; the message calls it `what`.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]*)", text.lower())
    if not match or match[2] not in units:
        raise UnhostedError(f"{text} is not a {what}")
    return float(match[1]) * units[match[2]]


def whole(key: str, text: str) -> int:
    """A whole number, the value of `key`."""
    if not text.isdecimal():
        raise UnhostedError(f"{key}: {text} is not a whole number")
    return int(text)


_RATES = {
    "": 1,
    **{f"{prefix}bit": 1_000**power for power, prefix in enumerate(("", "k", "m", "g", "t"))},
    **{f"{prefix}bps": 8 * 1_000**power for power, prefix in enumerate(("", "k", "m", "g", "t"))},
}
_SIZES = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "kbit": 1 << 7}
_TIMES = {
    "": 1_000,
    **dict.fromkeys(("s", "sec", "secs"), 1_000_000_000),
    **dict.fromkeys(("ms", "msec", "msecs"), 1_000_000),
    **dict.fromkeys(("us", "usec", "usecs"), 1_000),
}
