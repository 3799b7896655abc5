"""A receiver among thirteen kinds of attacker, briefly; `make bench-flood` takes a minute."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import pytest

from bench.flood import attackers, measure, places
from bench.flood.attackers import ANSWERED, KINDS, Target
from bench.flood.measure import Flood, run

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="needs 127.0.0.0/8 and /proc"),
]
judges_times = pytest.mark.skipif(
    os.environ.get("WEIR_HOSTILE") != "full", reason="judges times: WEIR_HOSTILE=full"
)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_attacker_is_turned_away_for_its_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is attacks nothing."""
    monkeypatch.setattr(attackers, "_HOARD", 10)
    rng = random.Random(1)  # noqa: S311
    with measure.receiver(tmp_path / "in") as (_, address):
        recorded, known = measure.record(tmp_path, address)
        target = Target(address, tuple(recorded), known, measure.KNOWN_BYTES)
        kinds = {name: KINDS[name](rng, target) for name in sorted(ANSWERED)}
        deadline = time.monotonic() + 60
        # Connections are read when they are given up, after ten others.
        while set(kinds) - set(target.heard) and time.monotonic() < deadline:
            for steps in kinds.values():
                next(steps)
    for name in kinds:
        assert target.heard[name] > target.turned_away[name], (name, target)


@judges_times
def test_attackers_do_not_stop_honest_senders() -> None:
    assert len(KINDS) == 13
    outcome = run(Flood(seconds=10, per_s=400, large_bytes=20_000_000))
    assert outcome.steps > 1_000
    assert outcome.small_served > 0
    assert outcome.faults() == []


@judges_times
@pytest.mark.parametrize("attack", places.ATTACKS)
@pytest.mark.parametrize("addresses", places.ADDRESSES)
def test_unknown_peers_keep_no_one_out(attack: str, addresses: int) -> None:
    wait = places.measure(attack, addresses)
    assert wait.attacks, wait
    assert wait.longest_s <= places.IN_TIME_S
