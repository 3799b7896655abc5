"""The runs of the study: transperf's tests and nsperf's."""

from __future__ import annotations

from weir.studies.contest import Extent
from weir.studies.schemes import END_TO_END, KINDS, present
from weir.studies.transperf import nsperf
from weir.studies.transperf.nsperf import Size
from weir.studies.transperf.scored import RATE_MBPS, RTT_MS, TESTS, Test

_SCENARIO = """
name = "transperf"

[topology]
rate = "{rate:g}mbit"
rtt = "{rtt:g}ms"
queue = "{queue}"
{policer}
[[flow]]
name = "flow"
stack = "{stack}"
count = {flows}
start_jitter = "100ms"

[measure]
duration = "{seconds:g}s"
sample_interval = "20ms"
repeat = {repeat}
seed = {seed}
"""

EXTENTS = {
    "small": Extent(present(KINDS), 30, 3),
    "full": Extent(present(END_TO_END), 60, 10),
}
"""Stacks, seconds and repeats are of transperf's tests, whose own last 60 s; nsperf's have their
own, as `nsperf.SIZES` says, and these repeats."""


def size_of(extent: Extent) -> Size:
    """How much of nsperf goes with an extent."""
    is_full = extent.seconds == EXTENTS["full"].seconds
    return nsperf.SIZES["full" if is_full else "small"]


def label(test: Test, stack: str) -> str:
    """The name of a case of transperf."""
    return f"transperf {test.network}, {stack}"


def scenario(test: Test, stack: str, extent: Extent) -> str:
    """One test with one control."""
    policer = ", ".join(f'{key} = "{value}"' for key, value in test.policer.items())
    return _SCENARIO.format(
        rate=RATE_MBPS,
        rtt=RTT_MS,
        queue=test.queue,
        policer=f"\n[topology.forward]\npolicer = {{ {policer} }}\n" if policer else "",
        stack=stack,
        flows=test.flows,
        seconds=extent.seconds,
        repeat=extent.repeat,
        seed=extent.seed,
    )


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of the study by its label."""
    own = {
        label(test, stack): scenario(test, stack, extent)
        for test in TESTS
        for stack in extent.stacks
    }
    return own | dict(nsperf.cases(size_of(extent), extent.repeat, extent.seed))
