"""The sentence about a path test."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from weir.pathtest.summary import verdict
from weir.results.results import Results
from weir.statistics.intervals import Estimate

MEASURED: dict[tuple[str, str], dict[str, float]] = {
    ("cubic", "up"): {
        "goodput_mbps": 9.0,
        "idle_rtt_ms_p50": 11.0,
        "loaded_rtt_ms_p50": 300.0,
        "responsiveness_rpm": 180.0,
    },
    ("reno", "up"): {"goodput_mbps": 8.0, "loaded_rtt_ms_p50": 900.0, "responsiveness_rpm": 60.0},
    ("cubic", "down"): {
        "goodput_mbps": 95.0,
        "idle_rtt_ms_p50": 10.0,
        "loaded_rtt_ms_p50": 40.0,
        "responsiveness_rpm": 1500.0,
        "policer_mbps": 100.0,
    },
}


def results() -> Results:
    """As much of results as the sentence reads."""
    cases = [
        {"label": f"{load} {way}", "series": load, "point": {"direction": way}}
        for load, way in MEASURED
    ]
    labelled = {f"{load} {way}": values for (load, way), values in MEASURED.items()}

    def estimate(label: str, name: str) -> Estimate:
        return Estimate(labelled[label].get(name), None, None, 1)

    return cast(Results, cast(Any, SimpleNamespace(cases=cases, estimate=estimate)))


def test_the_sentence_has_the_best_rates_and_the_worst_delay_of_these() -> None:
    assert verdict(results(), "example.org") == (
        "example.org: 9 Mbit/s up (cubic) and 95 Mbit/s down (cubic); the RTT is 11 ms idle and "
        "300 ms under load up (cubic); responsiveness 180 RPM (poor); a policer drops packets "
        "above 100 Mbit/s down (cubic)."
    )
