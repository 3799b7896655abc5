"""The paths of study `identify`: those of the full size had not been captured when chosen."""

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
    "fibre": _path("20mbit", "20ms", "60p"),
    "satellite": _path("4mbit", "200ms", "80p"),
    "mobile": _path("6mbit", "70ms", "120p", jitter="2ms"),
    "very shallow": _path("10mbit", "30ms", "8p"),
    "low loss": _path("12mbit", "60ms", "90p", loss="0.05%"),
    "high loss": _path("8mbit", "35ms", "50p", loss="1%"),
    "deep": _path("4mbit", "25ms", "100p"),
    "medium": _path("7mbit", "90ms", "60p"),
}

PATHS: Mapping[str, Mapping[str, Mapping[str, str]]] = {"small": _SMALL, "full": _FULL}
"""By size and name: keys of the scenario."""
