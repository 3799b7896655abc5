"""The paths of study `identify`, chosen before any of its captures was read."""

from __future__ import annotations

from collections.abc import Mapping

SCENARIO = """
name = "identify"
[topology]
[topology.forward]
[[flow]]
stack = "cubic"
[measure]
duration = "10s"
"""


def _path(rate: str, rtt: str, queue: str, **forward: str) -> dict[str, str]:
    keys = {"topology.rate": rate, "topology.rtt": rtt, "topology.queue": queue}
    return {**keys, **{f"topology.forward.{key}": value for key, value in forward.items()}}


_SMALL: dict[str, dict[str, str]] = {
    "DSL": _path("5mbit", "45ms", "40p"),
    "lossy": _path("6mbit", "60ms", "100p", loss="0.3%"),
}

_FULL: dict[str, dict[str, str]] = {
    **_SMALL,
    "shallow": _path("8mbit", "50ms", "12p"),
    "cable": _path("15mbit", "30ms", "100p"),
    "deep": _path("5mbit", "50ms", "150p"),
    "slow": _path("2mbit", "80ms", "30p"),
    "long": _path("10mbit", "120ms", "120p"),
    "jitter": _path("10mbit", "40ms", "80p", jitter="1ms"),
}

PATHS: Mapping[str, Mapping[str, Mapping[str, str]]] = {"small": _SMALL, "full": _FULL}
"""By size and name: keys of the scenario. Limits of `weir read` were set on other paths."""
