"""An emulated path between UDP programs: `weir relay` from Python.

>>> with Relay("127.0.0.1:0", "127.0.0.1:9001", delay="5ms", loss="1%") as relay:
...     host, _, port = relay.address.rpartition(":")
...     report = relay.report()
>>> (host, report["up"]["received"], report["warnings"])
('127.0.0.1', 0, [])
"""

from __future__ import annotations

from typing import Self

from weir import _native
from weir.links.emulation import PathReport, given, native_errors


class Relay:
    """A relay of UDP datagrams between clients and a server. It runs until it is stopped.

    It is a context manager, whose end stops it. The options are those of `weir relay`: quantities
    are text with a unit, and `up` (to the server) and `down` override them for one direction, as in
    `"loss=10%,jitter=5ms"`.
    """

    def __init__(
        self,
        listen: str,
        to: str,
        *,
        loss: str | None = None,
        delay: str | None = None,
        rate: str | None = None,
        queue: str | None = None,
        jitter: str | None = None,
        corrupt: str | None = None,
        corrupt_bits: int = 1,
        duplicate: str | None = None,
        reorder: str | None = None,
        feedback: str | None = None,
        up: str = "",
        down: str = "",
        serial: bool = False,
        seed: int = 1,
        clients: int = 100,
        idle: str = "60s",
    ) -> None:
        """Starts it.

        Args:
            listen: Address for clients, `HOST:PORT`; port 0 lets the system choose.
            to: Address of the server, `HOST:PORT`.
            loss: Share of datagrams lost, as in `5%`.
            delay: One-way delay, as in `20ms`.
            rate: Rate of IP packets, as in `10mbit`.
            queue: Queue capacity, with `rate`: `64p`, `1bdp`, `100ms`, `64kb`.
            jitter: Largest random variation of the delay.
            corrupt: Share of datagrams with flipped bits.
            corrupt_bits: Most bits flipped in one of these.
            duplicate: Share of datagrams duplicated.
            reorder: Share of datagrams delayed by a further 10 ms.
            feedback: Feedback of a link with a `rate`: `drai`, `anti-ecn`, `xcp`, `rcp`, a table.
            up: Options of the direction to the server.
            down: Options of the direction to the client.
            serial: Use one thread for both directions that sleeps `delay` for every datagram.
            seed: Random seed.
            clients: Most clients at the same time.
            idle: Remove a client that sends nothing for this long.

        Raises:
            ScenarioError: an option is not allowed; the message names it.
            InputError: an address is not valid.
            RunError: the system does not let it listen there.
        """
        options = given(
            loss=loss,
            delay=delay,
            rate=rate,
            queue=queue,
            jitter=jitter,
            corrupt=corrupt,
            duplicate=duplicate,
            reorder=reorder,
            feedback=feedback,
        )
        with native_errors():
            self._native = _native.UdpRelay(
                [listen, to], options, [up, down], serial, seed, clients, idle, corrupt_bits
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
