"""Two network namespaces joined by an emulated link: two hosts on one machine.

Programs run in either with [`Namespace.run`][] and meet the link as they would meet a network::

    with joined(delay="25ms", loss="1%") as (left, right):
        server = right.start(["weir", "recv", "--bind", f"{right.address}:9000"])
        left.run(["weir", "send", "big.bin", f"{right.address}:9000"])

The link is a TUN device in each namespace and the simulator's path pieces between them, in a thread
of this process. It needs Linux, root and ``/dev/net/tun``: [`missing`][] says what is not there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir.base.errors import WeirError

DEVICE = "weir0"
"""The name of the link's device in each namespace."""

_ADDRESSES = ("10.77.0.1", "10.77.0.2")


class NamespaceError(WeirError):
    """Network namespaces cannot be had, or the link between them cannot."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """A network namespace with one end of a link in it."""

    file: Path
    """Stands for it while the link is there; the namespace has no name."""
    address: str
    """IPv4 address of its end of the link."""

    def command(self, command: Sequence[str]) -> list[str]:
        """``command`` as it has to be written to run in here."""
        return ["nsenter", f"--net={self.file}", "--", *command]

    def run(self, command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
        """Runs ``command`` to its end; ``options`` are those of `subprocess.run`."""
        return subprocess.run(self.command(command), check=False, **options)

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Starts ``command``; ``options`` are those of `subprocess.Popen`."""
        return subprocess.Popen(self.command(command), **options)


@dataclass(slots=True)
class Link:
    """A link at work; iterating over it gives its two namespaces."""

    left: Namespace
    right: Namespace
    _native: Any = field(repr=False)

    def __iter__(self) -> Iterator[Namespace]:
        return iter((self.left, self.right))

    def report(self) -> dict[str, Any]:
        """Counters per direction (``up`` is from left to right), lateness in ms, warnings."""
        report: dict[str, Any] = self._native.report()
        return report


def missing() -> str | None:
    """What this machine lacks for namespaces and links between them; None if nothing."""
    if sys.platform != "linux":
        return "network namespaces are Linux's"
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "there is no /dev/net/tun"
    return None


@contextmanager
def joined(
    *,
    mtu: int = 1500,
    up: str = "",
    down: str = "",
    seed: int = 1,
    offload: str = "off",
    **options: str,
) -> Iterator[Link]:
    """Makes two namespaces with a link between them, which vanish at the end.

    ``options`` are those of ``weir relay``, for both directions: ``delay="25ms"`` (one-way),
    ``loss="1%"``, ``rate="10mbit"``, ``queue="64p"`` and every other key of a scenario's
    ``[topology.forward]``. ``up`` (left to right) and ``down`` say what differs, as in
    ``"loss=10%,delay=5ms"``. ``mtu`` is in bytes, at most 65535. With ``offload``
    (``"on"``, or ``"auto"``: above 500 Mbit/s) the kernel hands over up to 64 KB of a TCP flow at
    once; each packet is still queued and lost on its own.

    Raises:
        NamespaceError: where the machine lacks something, which it names.
        ScenarioError: if an option is not allowed.
    """
    lacking = missing()
    if lacking is not None:
        raise NamespaceError(lacking)
    from weir import _native

    try:
        native = _native.TunLink(
            list(_ADDRESSES), mtu, list(options.items()), (up, down), seed, offload
        )
    except OSError as error:
        raise NamespaceError(str(error)) from None
    ends = zip(native.namespaces, _ADDRESSES, strict=True)
    left, right = (Namespace(file, address) for file, address in ends)
    try:
        yield Link(left, right, native)
    finally:
        native.stop()
