"""The paths of study `predict`, chosen before any was modelled."""

from __future__ import annotations

from collections.abc import Mapping

from weir.experiments.captured import Keys, path_keys

_SMALL: dict[str, Keys] = {
    "cable": path_keys("20mbit", "30ms", "100p"),
    "shallow": path_keys("10mbit", "40ms", "12p"),
    "lossy": path_keys("10mbit", "60ms", "100p", loss="0.5%"),
    "policed": path_keys("50mbit", "30ms", "200p", policer="{ rate = '5mbit', burst = '60kb' }"),
}

_FULL: dict[str, Keys] = {
    **_SMALL,
    "cable, deep": path_keys("20mbit", "30ms", "400p"),
    "DSL": path_keys("5mbit", "50ms", "40p"),
    "DSL, deep": path_keys("5mbit", "50ms", "150p"),
    "slow": path_keys("2mbit", "80ms", "30p"),
    "fibre": path_keys("50mbit", "10ms", "80p"),
    "long": path_keys("20mbit", "120ms", "200p"),
    "long, shallow": path_keys("20mbit", "120ms", "50p"),
    "very shallow": path_keys("20mbit", "40ms", "7p"),
    "lossy, low": path_keys("20mbit", "40ms", "60p", loss="0.1%"),
    "lossy, high": path_keys("10mbit", "40ms", "60p", loss="2%"),
    "lossy, long": path_keys("10mbit", "150ms", "100p", loss="0.2%"),
    "bursts": path_keys(
        "20mbit", "40ms", "100p", burst_loss="{ good_to_bad = '0.1%', bad_to_good = '30%' }"
    ),
    "policed, low": path_keys(
        "20mbit", "50ms", "100p", policer="{ rate = '2mbit', burst = '30kb' }"
    ),
    "policed, deep bucket": path_keys(
        "50mbit", "40ms", "200p", policer="{ rate = '10mbit', burst = '500kb' }"
    ),
    "LTE": path_keys("5mbit", "60ms", "150p", rate_trace="traces/cellular.trace"),
    "LTE, deep": path_keys("5mbit", "60ms", "600p", rate_trace="traces/cellular.trace"),
    "steps": path_keys(
        "20mbit",
        "40ms",
        "100p",
        rate_steps="[{ at = '3s', rate = '6mbit' }, { at = '6s', rate = '15mbit' }]",
    ),
    "Starlink": path_keys("40mbit", "45ms", "250p", loss="0.2%", jitter="3ms"),
    "Wi-Fi": path_keys("30mbit", "30ms", "300p", jitter="4ms", loss="0.05%"),
}

PATHS: Mapping[str, Mapping[str, Keys]] = {"small": _SMALL, "full": _FULL}
"""By size and name: keys of the scenario."""
