"""`weir relay`: real datagrams through a real process, and how it fails."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from conftest import Invoke

PATIENCE_S = 60


@contextmanager
def udp() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        opened.settimeout(PATIENCE_S)
        yield opened


@contextmanager
def relaying(server: socket.socket, *asked: str) -> Iterator[tuple[Any, tuple[str, int]]]:
    """A relay process and where it listens."""
    host, port = server.getsockname()
    command = [sys.executable, "-m", "weir", "relay", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--to", f"{host}:{port}", *asked],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            first = process.stderr.readline()
            address = first.split()[1].rsplit(":", 1)
            yield process, (address[0], int(address[1]))
        finally:
            process.kill()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_datagrams_cross_and_are_counted(how: signal.Signals) -> None:
    with (
        udp() as server,
        udp() as client,
        relaying(server, "--up", "drop=[2]", "--delay", "1ms", "--json") as (process, at),
    ):
        for content in (b"one", b"two", b"three"):
            client.sendto(content, at)
        received = [server.recvfrom(2_000) for _ in range(2)]
        assert [content for content, _ in received] == [b"one", b"three"]
        server.sendto(b"answer", received[0][1])
        assert client.recvfrom(2_000) == (b"answer", at)
        process.send_signal(how)
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    document = json.loads(out)
    assert (document["schema"], document["command"], document["clients"]) == (1, "relay", 1)
    assert document["healthy"] == (not document["warnings"])
    up, down = document["rows"]
    assert (up["way"], up["received"], up["lost"], up["sent"]) == ("up", 3, 1, 2)
    assert (down["way"], down["received"], down["lost"], down["sent"]) == ("down", 1, 0, 1)


def test_the_table_ends_with_a_verdict(invoke: Invoke) -> None:
    result = invoke(
        *("relay", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9", "--serial"),
        *("--delay", "3ms", "--duration", "50ms"),
    )
    assert result.exit_code == 0, result.stderr
    assert "Health: good" in result.stdout
    assert "error: receive buffer full" in result.stdout


def test_a_check_measures_every_datagram(invoke: Invoke) -> None:
    result = invoke("relay", "--check", "--delay", "2ms", "--duration", "0.1s", "--json")
    assert result.exit_code == 0, result.stderr
    [row] = json.loads(result.stdout)["rows"]
    assert (row["sent"], row["received"]) == (1_000, 1_000)
    assert 0 <= row["added_ms_p50"] <= row["added_ms_p99"] <= row["added_ms_max"]


LISTEN = ("--listen", "127.0.0.1:0")
TO = ("--to", "127.0.0.1:9")


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ((), "--listen and --to are required"),
        (("--listen", "here", *TO), "--listen here: an address is HOST:PORT"),
        ((*LISTEN, "--to", "127.0.0.1:0"), "--to 127.0.0.1:0"),
        ((*LISTEN, *TO, "--loss", "150%"), "--loss=150%: '150%' is not a ratio"),
        ((*LISTEN, *TO, "--delay", "-1ms"), "--delay=-1ms: '-1ms' is not a time"),
        ((*LISTEN, *TO, "--queue", "64p"), "--queue=64p: nothing waits"),
        ((*LISTEN, *TO, "--down", "los=1%"), "--down los=1%: there is no such key"),
        ((*LISTEN, *TO, "--feedback", "drai"), "--feedback=drai: nothing waits"),
        ((*LISTEN, *TO, "--rate", "1mbit", "--feedback", "dry"), "--feedback=dry: kind: 'dry'"),
        ((*LISTEN, *TO, "--serial", "--queue", "1bdp"), "--queue=1bdp: the serial relay"),
        ((*LISTEN, *TO, "--idle", "5"), "--idle: '5' is not a time"),
        ((*LISTEN, *TO, "--duration", "soon"), "--duration: 'soon' is not a time"),
        (("--check", "--duration", "1ms"), "a check takes at least 0.1s"),
    ],
)
def test_bad_input_is_named(invoke: Invoke, asked: tuple[str, ...], named: str) -> None:
    result = invoke("relay", *asked)
    assert result.exit_code == 2
    assert named in result.stderr


def test_an_address_in_use_is_a_failure_in_one_line(invoke: Invoke) -> None:
    with udp() as taken:
        host, port = taken.getsockname()
        result = invoke("relay", "--listen", f"{host}:{port}", *TO)
    assert result.exit_code == 1
    assert "another program uses it" in result.stderr
