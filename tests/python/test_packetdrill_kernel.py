"""Packet scripts against Linux's TCP in a guest."""

from __future__ import annotations

from pathlib import Path

import requires

from weir.guest import packetdrill

pytestmark = requires.guest

SCRIPTS = Path(__file__).parents[1] / "packetdrill" / "slow-start"


def test_the_kernel_holds_the_scripts_of_slow_start(tmp_path: Path) -> None:
    """And it fails one that expects a wrong window."""
    right = SCRIPTS / "ack-per-1pkt.pkt"
    wrong = tmp_path / "wrong.pkt"
    wrong.write_text(right.read_text().replace("tcpi_snd_cwnd == 15", "tcpi_snd_cwnd == 16"))
    results = packetdrill.run_scripts([SCRIPTS, wrong], world="kernel-virtual")
    *good, bad = results
    assert {result.verdict for result in good} <= {"pass", "known"}, good
    assert good[0].world.startswith("kernel-6.")
    assert (bad.verdict, bad.message.partition(" does")[0]) == (
        "fail",
        "assert tcpi_snd_cwnd == 16",
    )
