"""Programs that are killed during transfers; at full size `make bench-kills`."""

from __future__ import annotations

import pytest

from bench import kills

pytestmark = pytest.mark.timeout(180)


def test_transfers_survive_kills_of_everyone() -> None:
    chaos = kills.Chaos(transfers=2, kills=8, seed=2, largest=3_000_000)
    fates = kills.run(chaos)
    # A quick transfer ends before some of its kills are due.
    assert sum(len(fate.killed) for fate in fates) >= 2
    assert kills.faults(fates) == []


def test_what_falls_back_is_lost() -> None:
    assert kills.lost([]) == 0
    assert kills.lost([1, 5, 5, 9]) == 0
    assert kills.lost([1, 9, 4, 9, 8]) == 5
