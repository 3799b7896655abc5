"""The paths that thresholds of `weir.modelling` were chosen on; those of the study are others.

`python -m bench.others` predicts on them as the study does, with seed 5.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping

import numpy as np

from weir.cells.protocol import Settings
from weir.cli import screen
from weir.experiments.captured import Keys, path_keys
from weir.running.execution import RunOptions
from weir.scenario.source import SIM, VIRTUAL
from weir.studies.predict import Predict

_SIZE = "full"
_SEED = 5
_TRACE_MS = 20_000


def _opportunities(seed: int, mbps: float, spread: float, memory_ms: float) -> Iterator[int]:
    """Milliseconds in which a link passes 1500 bytes, whose rate is random and correlated."""
    normal = np.random.Generator(np.random.PCG64(seed)).normal(size=_TRACE_MS)
    deviation = credit = 0.0
    for at, step in enumerate(normal, 1):
        deviation += -deviation / memory_ms + spread * np.sqrt(2 / memory_ms) * step
        credit += mbps / 12 * np.exp(deviation - spread**2 / 2)
        while credit >= 1:
            credit -= 1
            yield at


def _cell(seed: int, mbps: float, spread: float, memory_ms: float) -> str:
    return str(list(_opportunities(seed, mbps, spread, memory_ms)))


def _steps(*pairs: tuple[str, str]) -> str:
    return "[" + ", ".join(f"{{ at = '{at}', rate = '{rate}' }}" for at, rate in pairs) + "]"


_FIRST = _cell(1, 6.0, 0.7, 800)
_SECOND = _cell(2, 8.0, 0.5, 400)
_BURSTS = "{ good_to_bad = '0.15%', bad_to_good = '40%' }"
_FALLING = _steps(("2s", "4mbit"), ("5s", "8mbit"), ("8s", "3mbit"))
_FASTER = _steps(("4s", "12mbit"), ("7s", "25mbit"))

OTHERS: Mapping[str, Keys] = {
    "12 Mbit/s": path_keys("12mbit", "25ms", "60p"),
    "30 Mbit/s, deep": path_keys("30mbit", "20ms", "500p"),
    "25 Mbit/s, shallow": path_keys("25mbit", "60ms", "20p"),
    "15 Mbit/s, very shallow": path_keys("15mbit", "30ms", "6p"),
    "1 Mbit/s": path_keys("1mbit", "100ms", "25p"),
    "40 Mbit/s": path_keys("40mbit", "25ms", "90p"),
    "0.05 % loss": path_keys("30mbit", "80ms", "150p", loss="0.05%"),
    "0.15 % loss": path_keys("6mbit", "100ms", "40p", loss="0.15%"),
    "0.2 % loss": path_keys("25mbit", "25ms", "40p", loss="0.2%"),
    "0.3 % loss": path_keys("15mbit", "50ms", "90p", loss="0.3%"),
    "0.6 % loss": path_keys("12mbit", "70ms", "150p", loss="0.6%"),
    "1 % loss": path_keys("8mbit", "30ms", "50p", loss="1%"),
    "losses in bursts": path_keys("12mbit", "60ms", "80p", burst_loss=_BURSTS),
    "policer, 3 Mbit/s": path_keys(
        "30mbit", "40ms", "100p", policer="{ rate = '3mbit', burst = '50kb' }"
    ),
    "policer, 20 Mbit/s": path_keys(
        "100mbit", "20ms", "300p", policer="{ rate = '20mbit', burst = '200kb' }"
    ),
    "steps, falling": path_keys("10mbit", "60ms", "80p", rate_steps=_FALLING),
    "steps, faster": path_keys("30mbit", "30ms", "150p", rate_steps=_FASTER),
    "cellular": path_keys("5mbit", "40ms", "200p", rate_trace=_FIRST),
    "cellular, deep": path_keys("5mbit", "40ms", "800p", rate_trace=_FIRST),
    "cellular, shallow": path_keys("5mbit", "80ms", "100p", rate_trace=_SECOND),
    "jitter, 0.1 % loss": path_keys("25mbit", "50ms", "150p", jitter="2ms", loss="0.1%"),
    "jitter": path_keys("15mbit", "40ms", "200p", jitter="5ms"),
}


def main() -> None:
    """Prints the tables and findings of these paths."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", default=SIM, choices=(SIM, VIRTUAL))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        how = RunOptions(out=scratch, show_progress=False)
        settings = Settings(_SIZE, seed=_SEED, how=how, world=given.world)
        found = Predict({_SIZE: OTHERS}).run(settings)
    for finding in found.findings:
        screen.show(finding)


if __name__ == "__main__":
    main()
