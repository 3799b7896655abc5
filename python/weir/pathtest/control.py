"""The client's end of the control connection, and its messages."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

from weir.base.errors import InputError, StoppedError, WeirError
from weir.pathtest import server
from weir.pathtest.session import TICK_S
from weir.probes import channel, tcp_info, wire
from weir.probes.channel import Channel
from weir.probes.record import Order

CONNECT_S = 10.0
_RECORD_S = 60.0
_TURN_S = 0.1


class Control:
    """A control connection to a server."""

    def __init__(self, host: str, key: bytes | None) -> None:
        """Connects to `HOST[:PORT]`.

        Raises:
            InputError: the key is not the server's, or this is no Linux.
            WeirError: no server answers there.
        """
        self.controls = tcp_info.controls()
        """The congestion controls of this machine."""
        name, port = server.split(host, "HOST")
        if not name or not port:
            raise InputError(f"HOST {host}: name a host, as in example.org or [::1]:{wire.PORT}")
        self.host = host
        try:
            connection = socket.create_connection((name, port), timeout=CONNECT_S)
        except OSError as error:
            raise WeirError(
                f"{host}: {error.strerror or error}; start weir test --server there "
                f"(port {port}, TCP and UDP)"
            ) from None
        self.address: wire.Address = tuple(connection.getpeername())
        try:
            self._channel: Channel = channel.connect(connection, key)
            hello = self._channel.receive(CONNECT_S)
        except WeirError as error:
            connection.close()
            raise type(error)(f"{host}: {error}") from None
        self.server_controls = [str(name) for name in hello["controls"]]
        self.limits: dict[str, Any] = hello["limits"]

    def close(self) -> None:
        """Ends the connection."""
        with contextlib.suppress(WeirError):
            self.send_command("bye")
        self._channel.close()

    def request(self, order: Order, mss: int) -> bytes:
        """Requests a run; returns its token.

        Raises:
            WeirError: the connection broke, or the server refuses.
        """
        up, down = order.flows
        self._channel.send(
            do="run",
            control=order.control,
            up=up,
            down=down,
            duration_s=order.duration_s,
            udp_bps=order.udp_bps,
            stack=order.stack,
            mss=mss,
        )
        return bytes.fromhex(self._channel.receive(CONNECT_S)["token"])

    def send_command(self, word: str) -> None:
        """Sends the server a command about the run."""
        self._channel.send(do=word)

    def begin(self) -> None:
        """Starts the load at the server."""
        self.send_command("go")
        self._channel.receive(CONNECT_S)

    def record(self) -> dict[str, Any]:
        """Ends the run; returns what the server measured."""
        self.send_command("end")
        record: dict[str, Any] = self._channel.receive(_RECORD_S)["record"]
        return record

    def turns(self, seconds: float, is_stopped: Callable[[], bool]) -> Iterator[float]:
        """The time so far, ten times a second; sends the server a tick once a second.

        Raises:
            StoppedError: `is_stopped`.
        """
        began = spoken = time.monotonic()
        while (now := time.monotonic()) < began + seconds:
            if is_stopped():
                raise StoppedError("interrupted")
            if now - spoken > TICK_S:
                self.send_command("tick")
                spoken = now
            yield now - began
            time.sleep(min(_TURN_S, max(0.0, began + seconds - time.monotonic())))
