"""Transfers, relays and links from Python."""

from __future__ import annotations

import errno
import os
import socket
import threading
from pathlib import Path

import pytest
import requires

import weir
from weir.links.link import Link
from weir.links.relay import Relay
from weir.transfer.files import Progress, Receiver, receive, send


def test_a_file_arrives_through_a_relay_and_is_not_sent_again(tmp_path: Path) -> None:
    content = os.urandom(300_000)
    (tmp_path / "big.bin").write_bytes(content)
    seen: list[Progress] = []
    with (
        Receiver(tmp_path / "in", "127.0.0.1:0", max_size="1mb") as receiver,
        Relay("127.0.0.1:0", receiver.address, delay="5ms", loss="2%", seed=7) as relay,
    ):
        first = send([tmp_path / "big.bin"], relay.address, rate="4mbit", on_progress=seen.append)
        again = send([tmp_path / "big.bin"], receiver.address, stack="go-back-n/none", window=20)
    assert [file["verdict"] for file in first.files + again.files] == ["kept", "already"]
    assert (tmp_path / "in" / "big.bin").read_bytes() == content
    assert first.session["complete"]
    assert first.missing == []
    assert seen
    counts = relay.report()
    assert counts == relay.stop(), "the last report stays"
    assert counts["up"]["lost"] > 0
    assert counts["up"]["received"] == counts["up"]["sent"] + counts["up"]["lost"]


def test_a_refused_file_is_missing_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "big.bin").write_bytes(bytes(2_000))
    with Receiver(tmp_path / "in", "127.0.0.1:0", max_size="1kb") as receiver:
        sent = send([tmp_path / "big.bin"], receiver.address)
    assert [(file["verdict"], bool(file["reason"])) for file in sent.missing] == [("refused", True)]


def test_a_receiver_that_cannot_listen_raises_where_it_is_started(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(weir.WeirError, match=r"127\.0\.0\.1"), Receiver(tmp_path, address):
            pass
    assert not [thread for thread in threading.enumerate() if thread.name == "weir-receiver"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_wait": "forever"}, "max_wait: 'forever' is not a time"),
        ({"rate": "50"}, "rate: '50' is not a rate"),
        ({"window": 5, "stack": "udp"}, "window='5': udp has none"),
        ({"stack": "rack/cubik"}, "did you mean cubic?"),
    ],
)
def test_mistakes_of_a_sender_name_the_argument(options: dict[str, str], message: str) -> None:
    with pytest.raises(weir.InputError) as raised:
        send([__file__], "127.0.0.1:9", **options)  # type: ignore[arg-type]
    assert message in str(raised.value)


def test_mistakes_of_a_receiver_name_the_argument(tmp_path: Path) -> None:
    with pytest.raises(weir.InputError, match=r"memory='1kb': at least 4mib"):
        receive(tmp_path, "127.0.0.1:0", memory="1kb", on_event=lambda *_: None)


def test_mistakes_of_a_relay_name_the_argument() -> None:
    with pytest.raises(weir.ScenarioError, match="loss"):
        Relay("127.0.0.1:0", "127.0.0.1:9", loss="150%")
    with pytest.raises(weir.InputError, match="nowhere"):
        Relay("nowhere", "127.0.0.1:9")


def test_mistakes_of_a_link_name_the_arguments() -> None:
    with pytest.raises(weir.InputError, match=r"rtt='40ms', delay='1ms': give only one"):
        Link(rtt="40ms", delay="1ms")
    with pytest.raises(weir.InputError, match=r"tc: it sets 'delay' too"):
        Link(delay="1ms", tc="netem delay 5ms")
    with pytest.raises(RuntimeError, match="with statement"):
        Link().report()


@requires.namespaces
def test_commands_behind_a_link_have_its_delay(tmp_path: Path) -> None:
    with Link(rtt="60ms", pcap=tmp_path / "link.pcapng") as link:
        script = "import socket, time, os; began = time.monotonic(); s = socket.socket(); "
        script += "s.settimeout(30); error = s.connect_ex((os.environ['WEIR_LINK_HOST'], 9)); "
        script += "print(error, time.monotonic() - began)"
        done = link.run(["python3", "-c", script])
        counts = link.report()
        with pytest.raises(weir.InputError, match="no-such-command"):
            link.run(["no-such-command"])
    assert done.returncode == 0, done.stderr
    error, elapsed_s = done.stdout.split()
    assert int(error) == errno.ECONNREFUSED
    assert float(elapsed_s) > 0.055, "a refused connection takes one round trip"
    assert counts["up"]["sent"] >= 1
    assert counts["down"]["sent"] >= 1
    assert (tmp_path / "link.pcapng").stat().st_size > 0
