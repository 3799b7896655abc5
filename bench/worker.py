"""One run in a process of its own: a scenario file on stdin, what it took as JSON on stdout."""

from __future__ import annotations

import json
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path

from weir.controllers import trust
from weir.running.runner import execute
from weir.scenario.source import Source


def main() -> None:
    """Runs the scenario with seed 1, as a worker of `weir compare` would, and prints a row."""
    with trust.deciding(trust.trust_all):  # The benchmark's own text.
        scenario = Source(sys.stdin.read(), "bench").effective()
    forget_peak()
    before_mib = peak_mib()
    began = time.process_time()
    with trust.deciding(trust.trust_all):
        tables = execute(scenario, 1)
    cpu_s = time.process_time() - began
    summary = tables["summary"].row(0, named=True)
    measured = {
        "sim_s": summary["sim_s"],
        "events": summary["events"],
        "data_packets": summary["data_packets"],
        "goodput_mbps": float(tables["flows"]["goodput_mbps"].sum()),
        "cpu_s": cpu_s,
        "peak_mib": peak_mib(),
        "run_mib": peak_mib() - before_mib,
    }
    print(json.dumps(measured))


def forget_peak() -> None:
    """Starts the record of the largest memory afresh, where the system can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_mib() -> float:
    """The most memory that this process has held.

    Linux counts into `ru_maxrss` what the process was before it became this program, so its own
    record is read instead.
    """
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


if __name__ == "__main__":
    main()
