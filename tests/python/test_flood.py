"""A receiver among thirteen kinds of attacker, briefly; `make bench-flood` takes a minute."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import pytest

from bench.flood import frames, measure, places
from bench.flood.attackers import KINDS, UNANSWERED
from bench.flood.measure import Flood, run
from bench.flood.processes import Attack
from bench.flood.segments import Connection
from bench.flood.target import Target

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="needs 127.0.0.0/8 and /proc"),
]
judges_times = pytest.mark.skipif(
    os.environ.get("WEIR_HOSTILE") != "full", reason="judges times: WEIR_HOSTILE=full"
)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_attacker_is_turned_away_for_its_form(tmp_path: Path) -> None:
    """One that is attacks nothing."""
    rng = random.Random(1)  # noqa: S311
    with measure.receiver(tmp_path / "in") as (_, address):
        target = measure.known_target(tmp_path, address, addresses=40)
        kinds = {name: KINDS[name](rng, target) for name in sorted(set(KINDS) - UNANSWERED)}
        deadline = time.monotonic() + 60
        while set(kinds) - set(target.heard) and time.monotonic() < deadline:
            for steps in kinds.values():
                next(steps)
    for name in kinds:
        assert target.heard[name] > 0, (name, target)
        assert not target.turned_away[name], (name, target)


def test_an_attacker_out_of_form_is_noticed(tmp_path: Path) -> None:
    """It announces a file whose number is not the next."""
    rng = random.Random(1)  # noqa: S311
    with measure.receiver(tmp_path / "in") as (_, address):
        target = Target(address)
        connection = Connection(rng, address, target.host(rng))
        assert connection.wait(10)
        connection.say_all(frames.hello(1) + frames.file(7, 1_000, bytes(32), b"f"))
        deadline = time.monotonic() + 10
        while not target.turned_away["announcers"] and time.monotonic() < deadline:
            connection.read()
            target.hear("announcers", connection, frames.JUDGED)
            time.sleep(0.01)
        connection.close()
    assert (target.heard["announcers"], target.turned_away["announcers"]) == (0, 1)
    attack = Attack({"announcers": 1}, target.heard, target.turned_away)
    assert attack.faults() == [
        "'announcers' gets answers",
        "'announcers' is not turned away for its form",
    ]


@judges_times
def test_attackers_do_not_stop_honest_senders() -> None:
    assert len(KINDS) == 13
    outcome = run(Flood(seconds=10, per_s=400, large_bytes=20_000_000))
    assert outcome.small_served > 0
    assert outcome.faults() == []


@judges_times
@pytest.mark.parametrize("attack", places.ATTACKS)
@pytest.mark.parametrize("addresses", places.ADDRESSES)
def test_unknown_peers_keep_no_one_out(attack: str, addresses: int) -> None:
    wait = places.measure(attack, addresses)
    assert not wait.faults, wait
    assert wait.longest_s <= places.IN_TIME_S
