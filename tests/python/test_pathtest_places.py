"""Places of a path test's server: idle connections keep no client out."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest
from test_pathtest import KEY, SHORT, serving

from weir.pathtest.client import Client
from weir.pathtest.places import IN_ALL, PER_ADDRESS, PER_NETWORK, Places
from weir.pathtest.session import Limits


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


class Idle:
    """Connections that say nothing."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.places, self._stack = Places(), stack
        self._far_ends: dict[int, socket.socket] = {}

    def come(self, ip: str) -> int:
        own, far = socket.socketpair()
        self._stack.callback(own.close)
        self._stack.callback(far.close)
        number = self.places.take(own, (ip, 1))
        far.settimeout(0.0)
        self._far_ends[number] = far
        return number

    def is_closed(self, number: int) -> bool:
        try:
            return self._far_ends[number].recv(1) == b""
        except BlockingIOError:
            return False


def test_an_address_replaces_its_own_oldest(stack: contextlib.ExitStack) -> None:
    idle = Idle(stack)
    lone = idle.come("198.51.100.1")
    mine = [idle.come("192.0.2.1") for _ in range(PER_ADDRESS + 2)]
    assert [idle.is_closed(number) for number in mine[:4]] == [True, True, False, False]
    assert not idle.is_closed(lone)


def test_a_network_replaces_the_oldest_of_its_largest_address(stack: contextlib.ExitStack) -> None:
    idle = Idle(stack)
    lone = idle.come("192.0.2.200")
    for n in range(PER_NETWORK + 10):
        idle.come(f"192.0.2.{1 + n % 3}")
    assert not idle.is_closed(lone)


@pytest.mark.parametrize(
    ("host", "same"),
    [
        (lambda n: f"2001:db8:1:2::{n + 1:x}", PER_ADDRESS),
        (lambda n: f"2001:db8:1:{n:x}::1", PER_NETWORK),
        (lambda n: f"::ffff:192.0.2.{1 + n % 2}", PER_NETWORK),
    ],
)
def test_prefixes_of_ipv6_are_hosts_and_networks(
    stack: contextlib.ExitStack, host: object, same: int
) -> None:
    assert callable(host)
    idle = Idle(stack)
    numbers = [idle.come(host(n)) for n in range(same + 1)]
    assert [idle.is_closed(number) for number in numbers[:2]] == [True, False]


def test_a_peer_that_is_alone_in_its_network_stays(stack: contextlib.ExitStack) -> None:
    idle = Idle(stack)
    lone = idle.come("203.0.113.9")
    for n in range(2 * IN_ALL):
        idle.come(f"10.0.{n % 100}.{1 + n % 50}")
    assert not idle.is_closed(lone)
    idle.places.leave(lone)


def test_idle_connections_keep_no_client_out(stack: contextlib.ExitStack) -> None:
    with serving(KEY) as host:
        address = host.split(":")[0], int(host.split(":")[1])
        for _ in range(PER_ADDRESS + 20):
            stack.enter_context(socket.create_connection(address, 5))
        with Client(host, KEY) as client:
            assert client.run(SHORT, lambda _: None, lambda: False).flows


def test_a_client_without_a_run_makes_space(
    stack: contextlib.ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weir.pathtest.server._IDLE_S", 0.2)
    with serving(KEY, Limits(clients=1)) as host:
        stack.enter_context(Client(host, KEY))

        time.sleep(0.3)
        with Client(host, KEY) as client:
            assert client.run(SHORT, lambda _: None, lambda: False).flows
