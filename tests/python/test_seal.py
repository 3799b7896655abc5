"""Keys, and files over bare UDP: what is reported, what arrives, what is counted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import Invoke, started, until
from test_transfer import Receiver


def _key(invoke: Invoke, path: Path) -> Path:
    assert invoke("recv", "--new-key", path).exit_code == 0
    return path


def test_a_key_is_new_private_and_never_replaced(invoke: Invoke, tmp_path: Path) -> None:
    one, two = _key(invoke, tmp_path / "one"), _key(invoke, tmp_path / "two")
    assert len(bytes.fromhex(one.read_text())) == 32
    assert one.read_text() != two.read_text()
    assert one.stat().st_mode & 0o077 == 0
    again = invoke("recv", "--new-key", one)
    assert again.exit_code == 2
    assert "already exists" in again.output
    nowhere = invoke("recv", "--new-key", tmp_path / "no" / "folder")
    assert nowhere.exit_code == 2
    assert "No such file" in nowhere.output


def test_a_file_arrives_under_the_same_key_only(invoke: Invoke, tmp_path: Path) -> None:
    key, other = _key(invoke, tmp_path / "key"), _key(invoke, tmp_path / "other")
    path = tmp_path / "file"
    path.write_bytes(os.urandom(300_000))
    with Receiver(tmp_path / "in", key_file=key) as receiver:
        refused = invoke("send", path, receiver.address)
        assert refused.exit_code == 1
        assert "the receiver demands a key" in refused.output
        refused = invoke("send", path, receiver.address, "--key-file", other)
        assert refused.exit_code == 1
        assert "the receiver has another key" in refused.output
        sent = invoke("send", path, receiver.address, "--key-file", key)
        assert sent.exit_code == 0, sent.output
    assert (tmp_path / "in" / "file").read_bytes() == path.read_bytes()
    with Receiver(tmp_path / "in") as receiver:
        refused = invoke("send", path, receiver.address, "--key-file", key)
        assert refused.exit_code == 1
        assert "the receiver has no key" in refused.output


def test_a_receiver_with_several_keys_names_the_sender_and_can_remove_it(
    invoke: Invoke, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    alice, bob = _key(invoke, keys / "alice.key"), _key(invoke, keys / "bob.key")
    own = {key: tmp_path / key.name for key in (alice, bob)}
    for there, here in own.items():
        here.write_bytes(there.read_bytes())
        here.chmod(0o600)
    path = tmp_path / "file"
    path.write_bytes(os.urandom(30_000))
    with Receiver(tmp_path / "in", key_dir=keys) as receiver:
        for key in own.values():
            sent = invoke("send", path, receiver.address, "--key-file", key)
            assert sent.exit_code == 0, sent.output
        until(lambda: len(receiver.rows) == 2)
        assert [row["key"] for row in receiver.rows] == ["alice", "bob"]
        alice.unlink()
        path.write_bytes(os.urandom(30_000))

        def refused() -> bool:
            sent = invoke("send", path, receiver.address, "--key-file", own[alice])
            return "the receiver has another key" in sent.output

        until(refused)
        sent = invoke("send", path, receiver.address, "--key-file", own[bob])
        assert sent.exit_code == 0, sent.output


def test_a_removed_key_ends_its_transfer(invoke: Invoke, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    alice, _ = _key(invoke, keys / "alice.key"), _key(invoke, keys / "bob.key")
    own = tmp_path / "alice.key"
    own.write_bytes(alice.read_bytes())
    own.chmod(0o600)
    path = tmp_path / "file"
    path.write_bytes(os.urandom(3_000_000))
    with Receiver(tmp_path / "in", key_dir=keys) as receiver:
        args = ("send", path, receiver.address, "--key-file", own, "--rate", "4mbit")
        with started(*args) as sender:
            until(lambda: receiver.bytes_done > 0)
            alice.unlink()
            _, err = sender.communicate(timeout=30)
        assert sender.returncode == 1
        assert "the receiver has another key" in err
        until(lambda: bool(receiver.failures))
        assert receiver.failures == ["the sender's key was removed"]


def test_keys_come_from_a_file_or_a_folder(invoke: Invoke, tmp_path: Path) -> None:
    key = _key(invoke, tmp_path / "key")
    both = invoke("recv", "--key-file", key, "--key-dir", tmp_path)
    assert both.exit_code == 2
    assert "only one of them" in both.output
    none = invoke("recv", "--key-dir", tmp_path, "--bind", "127.0.0.1:0")
    assert none.exit_code == 2
    assert "holds 0 files NAME.key" in " ".join(none.output.split())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "holds 0 of them"),
        ("abc123", "holds 6 of them"),
        ("correct horse", "no such digit at byte 2"),
        (None, "cannot read the key file"),
    ],
)
def test_what_is_no_key_is_said_at_once(
    invoke: Invoke, tmp_path: Path, text: str | None, problem: str
) -> None:
    path, key = tmp_path / "file", tmp_path / "key"
    path.write_bytes(b"x")
    if text is not None:
        key.write_text(text)
    for verb in (("send", path, "127.0.0.1:9"), ("recv", "--bind", "127.0.0.1:0")):
        result = invoke(*verb, "--key-file", key)
        assert result.exit_code == 2
        assert problem in " ".join(result.output.split())


def test_a_key_that_others_may_read_is_reported(invoke: Invoke, tmp_path: Path) -> None:
    path, key = tmp_path / "file", _key(invoke, tmp_path / "key")
    path.write_bytes(b"x")
    key.chmod(0o644)
    with Receiver(tmp_path / "in", key_file=key) as receiver:
        sent = invoke("send", path, receiver.address, "--key-file", key)
    assert sent.exit_code == 0
    assert "other users may read the key" in sent.output


@pytest.mark.parametrize("size", [0, 1, 28_000])
def test_bare_udp_counts_its_datagrams(invoke: Invoke, tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(size))
    udp = ("--stack", "udp", "--mss", "1000b", "--rate", "20mbit", "--json", "--quiet")
    with Receiver(tmp_path / "in") as receiver:
        sent = invoke("send", path, receiver.address, *udp)
    assert sent.exit_code == 0, sent.output
    row = json.loads(sent.stdout)["rows"][0]
    datagrams = -(-size // 1000)
    assert (row["datagrams_sent"], row["datagrams_arrived"]) == (datagrams, datagrams)
    assert row["datagrams_again"] == 0
    assert (row["verdict"], row["arrived_bytes"]) == ("kept", size)
    assert (tmp_path / "in" / "file").read_bytes() == path.read_bytes()
    assert receiver.rows[0]["datagrams_arrived"] == datagrams


def test_bare_udp_has_no_window(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    result = invoke("send", "file", "127.0.0.1:9", "--stack", "udp", "--window", "5")
    assert result.exit_code == 2
    assert "--window 5: udp has none" in " ".join(result.output.split())
