"""An emulated path between UDP programs: `weir relay` from Python.

>>> with Relay("127.0.0.1:0", "127.0.0.1:9001", delay="5ms", loss="1%") as relay:
...     host, _, port = relay.address.rpartition(":")
...     report = relay.report()
>>> (host, report["up"]["received"], report["warnings"])
('127.0.0.1', 0, [])
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Self

from weir import _native
from weir.base.options import NETWORK, Option, documented
from weir.links.emulation import PathReport, native_errors
from weir.links.options import PathOptions


@documented()
@dataclass(eq=False)
class Relay(PathOptions):
    """A relay of UDP datagrams between clients and a server. It runs until it is stopped.

    It is a context manager, whose end stops it. The options are those of `weir relay`: quantities
    are text with a unit, and `up` (to the server) and `down` override them for one direction, as in
    `"loss=10%,jitter=5ms"`.

    Args:
        listen: Address for clients, `HOST:PORT`; port 0 lets the system choose.
        to: Address of the server, `HOST:PORT`.

    Raises:
        ScenarioError: an option is not allowed; the message names it.
        InputError: an address is not valid.
        RunError: the system does not let it listen there.
    """

    listen: str
    to: str
    _: KW_ONLY
    corrupt_bits: Annotated[
        int,
        Option("Most bits flipped in a datagram that {corrupt} damages.", min=1, max=64),
    ] = 1
    feedback: Annotated[
        str | None,
        Option(
            "Feedback of a link with a {rate}: `drai`, `anti-ecn`, `xcp`, `rcp`, or a table.",
            NETWORK,
            metavar="KIND",
        ),
    ] = None
    serial: Annotated[
        bool, Option("One thread for both directions that sleeps {delay} for every datagram.")
    ] = False
    clients: Annotated[int, Option("Most clients at the same time.", min=1, max=500)] = 100
    idle: Annotated[
        str, Option("Remove a client that sends nothing for this long.", metavar="TIME")
    ] = "60s"

    def __post_init__(self) -> None:
        """Starts it."""
        pairs = self.pairs()
        if self.feedback is not None:
            pairs.append(("feedback", self.feedback))
        with native_errors():
            self._native = _native.UdpRelay(
                [self.listen, self.to],
                pairs,
                [self.up, self.down],
                self.serial,
                self.seed,
                self.clients,
                self.idle,
                self.corrupt_bits,
            )
        self._last: PathReport | None = None

    @property
    def address(self) -> str:
        """The address that clients send to, `HOST:PORT`."""
        return self._native.address

    def report(self) -> PathReport:
        """Returns the counters so far; those of its end after `stop`.

        Raises:
            RunError: the relay has failed.
        """
        if self._last is not None:
            return self._last
        with native_errors():
            return self._native.report()

    def stop(self) -> PathReport:
        """Stops it and returns its last counters. A second call has no further effect.

        Raises:
            RunError: the relay had failed.
        """
        if self._last is None:
            with native_errors():
                self._last = self._native.stop()
        return self._last

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
