"""The scenarios of study `limits`: each has a configured limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.experiments.captured import Keys, path_keys


@dataclass(frozen=True)
class Case:
    """A scenario whose limit is configured."""

    limit: str
    """The limit, as `weir.reading.LIMITS` names it."""
    keys: Keys = field(default_factory=dict)


def _case(limit: str, path: Keys, **flow: str) -> Case:
    return Case(limit, {**path, **{f"flow.0.{key}": value for key, value in flow.items()}})


def _cable(queue: str = "1bdp", **forward: str) -> Keys:
    return path_keys("20mbit", "40ms", queue, **forward)


_BURSTS = "{ good_to_bad = '0.2%', bad_to_good = '30%' }"
_POLICER = "{ rate = '5mbit', burst = '100kb' }"

_SMALL: dict[str, Case] = {
    "small receive buffer": _case("receiver-window", _cable(), recv_buffer="40kb"),
    "messages": _case("application", _cable(), workload="{ kind = 'rate', rate = '2mbit' }"),
    "random loss": _case("random-loss", _cable("4bdp", loss="1%")),
    "deep buffer": _case("path-capacity", _cable("4bdp")),
}

_FULL: dict[str, Case] = {
    **_SMALL,
    "small send buffer": _case("send-buffer", _cable(), send_buffer="60kb"),
    "short transfer": _case(
        "slow-start",
        path_keys("1gbit", "100ms", "1bdp"),
        workload="{ kind = 'file', size = '1mb' }",
    ),
    "loss in bursts": _case("random-loss", _cable("4bdp", burst_loss=_BURSTS)),
    "policer": _case("policer", path_keys("100mbit", "40ms", "1bdp", policer=_POLICER)),
    "shallow buffer": _case("congestion", _cable("6p"), stack="reno"),
    "four flows": _case("congestion", _cable(), count="4"),
    "reordering": _case("path-capacity", _cable(reorder="1%", reorder_delay="5ms")),
    "slow acknowledgements": _case(
        "path-capacity", {**_cable(), "topology.reverse.rate": "400kbit"}
    ),
}

CASES: Mapping[str, Mapping[str, Case]] = {"small": _SMALL, "full": _FULL}
"""By size and name."""
