"""Suites in other worlds than the simulator."""

from __future__ import annotations

import pytest

from weir.conform.cases.plans import Request, planned
from weir.scenario.source import SIM, VIRTUAL


@pytest.mark.parametrize(("world", "buffer"), [(SIM, "512mib"), (VIRTUAL, "64mib")])
def test_a_kernel_makes_its_own_receive_buffer(world: str, buffer: str) -> None:
    """`SO_RCVBUF` is cut to `net.core.rmem_max`, which would limit the sender."""
    made = planned(Request(("cubic",), ("cubic",), ("C1",), world=world)).plan
    assert made is not None
    (flow,) = made.cases[0].scenario.fields["flow"]
    assert flow["recv_buffer"] == buffer
