"""The two processes of a transfer, and the hosts that they run on."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weir.processes import netns
from weir.transfer.model import Network
from weir.transfer.process import End


@dataclass(frozen=True, slots=True)
class Programs:
    """What sends and what receives: commands that read a job and print answers."""

    sender: Sequence[str]
    receiver: Sequence[str]


def own_programs() -> Programs:
    """Those that Weir itself has: one for both ends."""
    command = [sys.executable, str(Path(__file__).with_name("worker.py"))]
    return Programs(command, command)


@dataclass(frozen=True, slots=True)
class Ends:
    """A sender and a receiver that wait for a job, and where the receiver is to listen."""

    sender: End
    receiver: End
    address: str


@dataclass(frozen=True, slots=True)
class Hosts:
    """Where the two ends run, as commands to put in front of theirs, and the receiver's address."""

    address: str
    at_sender: Sequence[str] = ()
    at_receiver: Sequence[str] = ()

    @contextmanager
    def start(self, programs: Programs) -> Iterator[Ends]:
        """Starts both programs, and ends them in the end."""
        receiver = End([*self.at_receiver, *programs.receiver])
        try:
            sender = End([*self.at_sender, *programs.sender])
            try:
                yield Ends(sender, receiver, self.address)
            finally:
                sender.kill()
        finally:
            receiver.kill()


@contextmanager
def hosts(network: Network, seed: int = 1) -> Iterator[Hosts]:
    """This host twice, or two namespaces joined by an emulated link with that random seed.

    Raises:
        WeirError: such a link cannot be made here.
    """
    if network.kind == "loopback":
        yield Hosts("127.0.0.1:0")
        return
    loss = f"loss={network.loss_percent}%"
    up, down = (
        loss if network.loses in ("both", direction) else "" for direction in ("data", "acks")
    )
    if network.rate_mbit is not None:
        limit = f"rate={network.rate_mbit}mbit,queue={network.queue}"
        up = f"{limit},{up}" if up else limit
    delay = f"{network.delay_ms}ms"
    with netns.joined(mtu=network.mtu, delay=delay, up=up, down=down, seed=seed) as (left, right):
        for host in (left, right):
            host.run(["sh", "-c", _FORGET])
            if network.rate_mbit is not None:
                host.run(["sh", "-c", _LARGE_BUFFERS])
        yield Hosts(f"{right.address}:0", left.command([]), right.command([]))


_LARGE_BUFFERS = (
    "for way in rmem wmem; do echo 4096 131072 67108864 > /proc/sys/net/ipv4/tcp_$way; done"
)
"""On a long fat path TCP's own buffers shall not be what limits it: they may grow to 64 MiB."""

_FORGET = "echo 1 > /proc/sys/net/ipv4/tcp_no_metrics_save"
"""TCP shall not start with what it remembers of a transfer before."""
