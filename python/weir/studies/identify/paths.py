"""The paths of study `identify`: those of the full size had not been captured when chosen."""

from __future__ import annotations

from collections.abc import Mapping

from weir.experiments.captured import Keys, path_keys

_SMALL: dict[str, Keys] = {
    "DSL": path_keys("5mbit", "45ms", "40p"),
    "lossy": path_keys("6mbit", "60ms", "100p", loss="0.3%"),
}

_FULL: dict[str, Keys] = {
    "fibre": path_keys("20mbit", "20ms", "60p"),
    "satellite": path_keys("4mbit", "200ms", "80p"),
    "mobile": path_keys("6mbit", "70ms", "120p", jitter="2ms"),
    "very shallow": path_keys("10mbit", "30ms", "8p"),
    "low loss": path_keys("12mbit", "60ms", "90p", loss="0.05%"),
    "high loss": path_keys("8mbit", "35ms", "50p", loss="1%"),
    "deep": path_keys("4mbit", "25ms", "100p"),
    "medium": path_keys("7mbit", "90ms", "60p"),
}

PATHS: Mapping[str, Mapping[str, Keys]] = {"small": _SMALL, "full": _FULL}
"""By size and name: keys of the scenario."""

_LIMITED: dict[str, Keys] = {
    "paced": {"kind": "rate", "rate": "1mbit"},
    "uploads": {"kind": "request", "request": "20kb", "response": "100b", "gap": "150ms"},
    "on and off": {"kind": "on-off", "rate": "2mbit", "on": "200ms", "off": "300ms"},
    "small file": {"kind": "file", "size": "30kb"},
}

WORKLOADS: Mapping[str, Keys] = {
    name: {f"flow.0.workload.{key}": value for key, value in keys.items()}
    for name, keys in _LIMITED.items()
}
"""By name: keys of applications that offer less than a path carries, so that no window limits them
for long. They run on all paths: 17 controllers, 8 paths and 4 workloads are 544 flows."""
