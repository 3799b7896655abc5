"""Files carried from one process to another and timed: what studies and benchmarks are made of.

The time of a transfer runs from the sender's clock just before it connects to the receiver's clock
when the last byte is in its file. Both clocks are `CLOCK_MONOTONIC` of one machine, which
namespaces share. So it includes the handshake, and neither the start of a process nor the close.
"""

from __future__ import annotations

from weir.transfer.model import LOCAL, Network, Outcome, Transfer
from weir.transfer.site import Site

__all__ = ["LOCAL", "Network", "Outcome", "Site", "Transfer"]
