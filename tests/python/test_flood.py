"""A receiver among ten kinds of attacker, for ten seconds; `make bench-flood` takes a minute."""

from __future__ import annotations

import os
import sys

import pytest

from bench.flood.attackers import KINDS
from bench.flood.measure import Flood, run

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="needs 127.0.0.0/8 and /proc"),
    pytest.mark.skipif(
        os.environ.get("WEIR_HOSTILE") != "full", reason="judges times: WEIR_HOSTILE=full"
    ),
]


def test_attackers_do_not_stop_honest_senders() -> None:
    assert len(KINDS) == 10
    outcome = run(Flood(seconds=10, per_s=400, large_bytes=20_000_000))
    assert outcome.steps > 1_000
    assert outcome.small_served > 0
    assert outcome.faults() == []
