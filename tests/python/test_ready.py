"""When a server is ready: the option, and what is looked at."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from weir.base.errors import InputError
from weir.processes.ready import Ready, open_ports


def test_each_form_is_read() -> None:
    for text in ("port:5201", "port:1", "port:65535", "line:listening on: 9", "delay:250ms"):
        assert str(Ready.parse(text)) == text
    assert Ready.parse("line:a:b").value == "a:b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5201", "use port:NUMBER, line:TEXT or delay:TIME"),
        ("port:", "use port:NUMBER"),
        ("when:now", "use port:NUMBER"),
        ("port:0", "from 1 to 65535"),
        ("port:65536", "from 1 to 65535"),
        ("port:x", "from 1 to 65535"),
        ("delay:soon", "'soon' is not a time"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        Ready.parse(text)
    assert str(refused.value).startswith(f"--ready '{text}': ")


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_ports_of_both_transports_are_seen_without_a_connection(family: int) -> None:
    if not Path("/proc/net/tcp").exists():
        pytest.skip("/proc/net/tcp: this is not Linux")
    loopback = "127.0.0.1" if family == socket.AF_INET else "::1"
    try:
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.bind((loopback, 0))
    except OSError as error:
        pytest.skip(f"{loopback}: {error}")
    with listening, socket.socket(family, socket.SOCK_DGRAM) as bound:
        port = listening.getsockname()[1]
        assert port not in open_ports(os.getpid())
        listening.listen()
        bound.bind((loopback, 0))
        found = open_ports(os.getpid())
        assert {port, bound.getsockname()[1]} <= found
        ready = Ready("port", str(port))
        assert ready.is_met(0.0, os.getpid(), ())
        assert not Ready("port", "1").is_met(0.0, os.getpid(), ())


def test_a_line_may_be_in_either_output(tmp_path: Path) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    err.write_text("starting\nnow listening\n")
    assert Ready.parse("line:now listening").is_met(0.0, 1, (out, err))
    assert not Ready.parse("line:stopped").is_met(0.0, 1, (out, err))


def test_a_delay_is_the_time_that_has_been_waited() -> None:
    ready = Ready.parse("delay:1s")
    assert [ready.is_met(waited, 1, ()) for waited in (0.0, 0.99, 1.0)] == [False, False, True]
