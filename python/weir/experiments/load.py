"""Flows and measurement of tests whose load does not change: streams and closed-loop requests."""

from __future__ import annotations

STREAM = '{ kind = "bulk" }'

_FLOWS = """
[[flow]]
name = "{name}"
stack = "{stack}"
from = "senders"
to = "receiver"
count = {count}
start_jitter = "{wait:.6f}s"
workload = {workload}
"""

_MEASURE = """
[measure]
duration = "{duration:.6f}s"
warmup = "{warmup:.6f}s"
sample_interval = "0s"
repeat = {repeat}
seed = {seed}
"""


def requests(size: str) -> str:
    """A workload: requests of `size`, each answered by one byte and followed by the next."""
    return f'{{ kind = "request", request = "{size}", response = "1b" }}'


def flows(name: str, stack: str, count: int, wait_s: float, workload: str) -> str:
    """Number of equal flows, each of which waits a random time up to `wait_s` before it starts."""
    return _FLOWS.format(name=name, stack=stack, count=count, wait=wait_s, workload=workload)


def measured(seconds: float, warmup_s: float, repeat: int, seed: int) -> str:
    """The section of a scenario that says what is measured; nothing over time."""
    return _MEASURE.format(duration=seconds, warmup=warmup_s, repeat=repeat, seed=seed)
