"""What the compiler of a wheel learns from: `python -m bench.training` runs what users run.

`make wheel` counts in these commands which way each branch goes, and compiles for that. The counts
change where code lies and what is inlined, never a result.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

_COMPARE = "compare --duration 10s --repeat 2 --seed 1 --no-report"
COMMANDS = (
    f"{_COMPARE} reno cubic bbr --rate 10mbit --rtt 40ms --queue 1bdp",
    f"{_COMPARE} sack/reno rack/cubic rack/bbr --rate 100mbit --rtt 20ms --queue 1bdp",
    f"{_COMPARE} newreno/cubic rack/copa rack/bbr3 --rate 20mbit --rtt 50ms --loss 0.5%",
    "compare stop-and-wait/none go-back-n(10)/none selective-repeat(10)/none rack/cubic "
    "--size 1mb --loss 2% --repeat 5 --no-report",
    "run web-search --set measure.duration=2s --repeat 1 --no-report",
    "run parking-lot --set measure.duration=20s --no-report",
    "compare rack/cubic rack/bbr --world udp --rate 200mbit --size 20mb --repeat 1 --no-report",
)
"""Of `weir`: controllers, recoveries, rates, many flows, several bottlenecks, real sockets."""


def train() -> None:
    """Runs the commands in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="weir-training-") as name:
        for command in COMMANDS:
            words = [sys.executable, "-m", "weir", *command.split(), "--quiet"]
            subprocess.run(words, cwd=Path(name), check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    train()
