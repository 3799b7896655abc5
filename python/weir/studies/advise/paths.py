"""The paths of study `advise`, chosen before any advice on them was seen."""

from __future__ import annotations

from collections.abc import Mapping

from weir.experiments.captured import Keys, path_keys


def _policed(rate: str, rtt: str, queue: str, policer: str, burst: str) -> Keys:
    return path_keys(rate, rtt, queue, policer=f"{{ rate = '{policer}', burst = '{burst}' }}")


def _shared(keys: Keys, cross: str) -> Keys:
    """The same path with datagrams next to the flow, which do not react."""
    other = {"flow.1.stack": "udp", "flow.1.workload": f"{{ kind = 'rate', rate = '{cross}' }}"}
    return {**keys, **other}


_SMALL: dict[str, Keys] = {
    "cable": path_keys("20mbit", "30ms", "100p"),
    "lossy": path_keys("20mbit", "80ms", "150p", loss="0.3%"),
    "shallow": path_keys("20mbit", "100ms", "20p"),
    "policed": _policed("50mbit", "30ms", "200p", "5mbit", "60kb"),
}

_CLEAN: dict[str, Keys] = {
    "2 Mbit/s, 40 ms": path_keys("2mbit", "40ms", "20p"),
    "5 Mbit/s, 20 ms": path_keys("5mbit", "20ms", "30p"),
    "10 Mbit/s, 40 ms": path_keys("10mbit", "40ms", "33p"),
    "50 Mbit/s, 30 ms": path_keys("50mbit", "30ms", "130p"),
    "100 Mbit/s, 20 ms": path_keys("100mbit", "20ms", "170p"),
    "200 Mbit/s, 10 ms": path_keys("200mbit", "10ms", "170p"),
    "20 Mbit/s, 200 ms": path_keys("20mbit", "200ms", "300p"),
    "5 Mbit/s, 100 ms": path_keys("5mbit", "100ms", "40p"),
    "5 Mbit/s, 50 ms, deep": path_keys("5mbit", "50ms", "200p"),
    "20 Mbit/s, 40 ms, deep": path_keys("20mbit", "40ms", "600p"),
}

_SHALLOW: dict[str, Keys] = {
    "10 Mbit/s, 40 ms, 5 packets": path_keys("10mbit", "40ms", "5p"),
    "20 Mbit/s, 30 ms, 4 packets": path_keys("20mbit", "30ms", "4p"),
    "50 Mbit/s, 80 ms, 30 packets": path_keys("50mbit", "80ms", "30p"),
    "100 Mbit/s, 50 ms, 40 packets": path_keys("100mbit", "50ms", "40p"),
    "200 Mbit/s, 40 ms, 60 packets": path_keys("200mbit", "40ms", "60p"),
}

_LOSSY: dict[str, Keys] = {
    "10 Mbit/s, 40 ms, 0.5 %": path_keys("10mbit", "40ms", "60p", loss="0.5%"),
    "50 Mbit/s, 60 ms, 0.1 %": path_keys("50mbit", "60ms", "250p", loss="0.1%"),
    "100 Mbit/s, 100 ms, 0.05 %": path_keys("100mbit", "100ms", "800p", loss="0.05%"),
    "5 Mbit/s, 200 ms, 1 %": path_keys("5mbit", "200ms", "80p", loss="1%"),
    "2 Mbit/s, 100 ms, 2 %": path_keys("2mbit", "100ms", "30p", loss="2%"),
    "200 Mbit/s, 30 ms, 0.02 %": path_keys("200mbit", "30ms", "500p", loss="0.02%"),
    "20 Mbit/s, 150 ms, 0.1 %": path_keys("20mbit", "150ms", "250p", loss="0.1%"),
    "20 Mbit/s, 60 ms, bursts": path_keys(
        "20mbit", "60ms", "100p", burst_loss="{ good_to_bad = '0.1%', bad_to_good = '30%' }"
    ),
}

_POLICED: dict[str, Keys] = {
    "20 of 100 Mbit/s, 40 ms": _policed("100mbit", "40ms", "300p", "20mbit", "200kb"),
    "2 of 20 Mbit/s, 100 ms": _policed("20mbit", "100ms", "150p", "2mbit", "30kb"),
    "10 of 50 Mbit/s, 80 ms": _policed("50mbit", "80ms", "300p", "10mbit", "100kb"),
    "8 of 30 Mbit/s, 20 ms": _policed("30mbit", "20ms", "100p", "8mbit", "20kb"),
}

_REORDERED: dict[str, Keys] = {
    "10 Mbit/s, 40 ms, 1 % late": path_keys(
        "10mbit", "40ms", "60p", reorder="1%", reorder_delay="8ms"
    ),
    "50 Mbit/s, 60 ms, 0.5 % late": path_keys(
        "50mbit", "60ms", "250p", reorder="0.5%", reorder_delay="5ms"
    ),
    "20 Mbit/s, 100 ms, 2 % late": path_keys(
        "20mbit", "100ms", "170p", reorder="2%", reorder_delay="20ms"
    ),
    "30 Mbit/s, 40 ms, jitter": path_keys("30mbit", "40ms", "200p", jitter="3ms"),
}

_OTHERS: dict[str, Keys] = {
    "20 Mbit/s, 40 ms, 8 of others": _shared(path_keys("20mbit", "40ms", "100p"), "8mbit"),
    "10 Mbit/s, 80 ms, 3 of others": _shared(path_keys("10mbit", "80ms", "70p"), "3mbit"),
    "50 Mbit/s, 30 ms, 25 of others": _shared(path_keys("50mbit", "30ms", "130p"), "25mbit"),
    "20 Mbit/s, 60 ms, CoDel": path_keys("20mbit", "60ms", "{ kind = 'codel' }"),
    "10 Mbit/s, 40 ms, PIE": path_keys("10mbit", "40ms", "{ kind = 'pie' }"),
    "30 Mbit/s, 50 ms, steps": path_keys(
        "30mbit",
        "50ms",
        "150p",
        rate_steps="[{ at = '3s', rate = '10mbit' }, { at = '6s', rate = '20mbit' }]",
    ),
}

PATHS: Mapping[str, Mapping[str, Keys]] = {
    "small": _SMALL,
    "full": {
        **_SMALL,
        **_CLEAN,
        **_SHALLOW,
        **_LOSSY,
        **_POLICED,
        **_REORDERED,
        **_OTHERS,
    },
}
"""By size and name: keys of the scenario."""
