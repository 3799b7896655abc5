"""The paths of study `predict`, chosen before any was modelled."""

from __future__ import annotations

from collections.abc import Mapping

SCENARIO = """
name = "predict"
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
    "cable": _path("20mbit", "30ms", "100p"),
    "shallow": _path("10mbit", "40ms", "12p"),
    "lossy": _path("10mbit", "60ms", "100p", loss="0.5%"),
    "policed": _path("50mbit", "30ms", "200p", policer="{ rate = '5mbit', burst = '60kb' }"),
}

_FULL: dict[str, dict[str, str]] = {
    **_SMALL,
    "cable, deep": _path("20mbit", "30ms", "400p"),
    "DSL": _path("5mbit", "50ms", "40p"),
    "DSL, deep": _path("5mbit", "50ms", "150p"),
    "slow": _path("2mbit", "80ms", "30p"),
    "fibre": _path("50mbit", "10ms", "80p"),
    "long": _path("20mbit", "120ms", "200p"),
    "long, shallow": _path("20mbit", "120ms", "50p"),
    "very shallow": _path("20mbit", "40ms", "7p"),
    "lossy, low": _path("20mbit", "40ms", "60p", loss="0.1%"),
    "lossy, high": _path("10mbit", "40ms", "60p", loss="2%"),
    "lossy, long": _path("10mbit", "150ms", "100p", loss="0.2%"),
    "bursts": _path(
        "20mbit", "40ms", "100p", burst_loss="{ good_to_bad = '0.1%', bad_to_good = '30%' }"
    ),
    "policed, low": _path("20mbit", "50ms", "100p", policer="{ rate = '2mbit', burst = '30kb' }"),
    "policed, deep bucket": _path(
        "50mbit", "40ms", "200p", policer="{ rate = '10mbit', burst = '500kb' }"
    ),
    "LTE": _path("5mbit", "60ms", "150p", rate_trace="traces/cellular.trace"),
    "LTE, deep": _path("5mbit", "60ms", "600p", rate_trace="traces/cellular.trace"),
    "steps": _path(
        "20mbit",
        "40ms",
        "100p",
        rate_steps="[{ at = '3s', rate = '6mbit' }, { at = '6s', rate = '15mbit' }]",
    ),
    "Starlink": _path("40mbit", "45ms", "250p", loss="0.2%", jitter="3ms"),
    "Wi-Fi": _path("30mbit", "30ms", "300p", jitter="4ms", loss="0.05%"),
}

PATHS: Mapping[str, Mapping[str, Mapping[str, str]]] = {"small": _SMALL, "full": _FULL}
"""By size and name: keys of the scenario."""
