"""Folders through `weir send`; at full size `python -m bench.trees`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE_S, Invoke

from bench import trees
from weir.transfer.files import Receiver, send

pytestmark = pytest.mark.timeout(120)


def _tree(root: Path) -> Path:
    (root / "a" / "b").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "a" / "one.txt").write_text("one")
    (root / "a" / "b" / "two.txt").write_text("two")
    (root / "a" / "b" / "same.txt").write_text("one")
    (root / "a" / "one.txt").chmod(0o640)
    os.utime(root / "a" / "one.txt", ns=(0, 10**18 + 7))
    (root / "link").symlink_to("a/one.txt")
    (root / "empty").chmod(0o511)
    os.utime(root / "empty", ns=(0, 10**18))
    return root


def _verdicts(rows: list[Any]) -> dict[str, str]:
    return {row["saved_as"] or row["file"]: row["verdict"] for row in rows}


def test_a_folder_survives_kills_of_both_ends(tmp_path: Path) -> None:
    outcome = trees.run(trees.Shape(files=200, sparse=64 << 20, kills=1), tmp_path)
    assert outcome.problems == []
    assert outcome.occupied_bytes < 1 << 20


def test_a_folder_arrives_as_it_is_and_once(tmp_path: Path) -> None:
    source = _tree(tmp_path / "tree")
    with Receiver(tmp_path / "in", "127.0.0.1:0") as receiver:
        first = send([source], receiver.address)
        again = send([f"{source}/"], receiver.address)
    assert trees.entries(tmp_path / "in" / "tree") == trees.entries(source)
    assert first.missing == again.missing == []
    assert {row["verdict"] for row in first.files} == {"kept"}
    assert {row["verdict"] for row in again.files} == {"already"}
    assert again.session["sent_bytes"] < 2_000
    assert {row["kind"] for row in receiver.files} == {"file", "folder", "link"}


def test_permissions_and_times_follow_those_of_the_sender(tmp_path: Path) -> None:
    source = _tree(tmp_path / "tree")
    with Receiver(tmp_path / "in", "127.0.0.1:0") as receiver:
        send([source], receiver.address)
        (source / "a" / "one.txt").chmod(0o600)
        os.utime(source / "a" / "b" / "two.txt", ns=(0, 5 * 10**17))
        (source / "a").chmod(0o700)
        send([source], receiver.address)
    assert trees.entries(tmp_path / "in" / "tree") == trees.entries(source)


def test_nothing_is_put_into_a_folder_that_no_sender_has_made(tmp_path: Path) -> None:
    source = _tree(tmp_path / "bin")
    own = tmp_path / "in" / "bin"
    own.mkdir(parents=True)
    with Receiver(tmp_path / "in", "127.0.0.1:0") as receiver:
        sent = send([source], receiver.address)
        again = send([source], receiver.address)
    assert list(own.iterdir()) == []
    assert trees.entries(tmp_path / "in" / "bin (1)") == trees.entries(source)
    assert sent.missing == again.missing == []
    assert not (tmp_path / "in" / "bin (2)").exists()


def test_a_changed_file_gets_a_number_and_replaces_nothing(tmp_path: Path) -> None:
    source = _tree(tmp_path / "tree")
    with Receiver(tmp_path / "in", "127.0.0.1:0") as receiver:
        send([source], receiver.address)
        (source / "a" / "one.txt").write_text("changed")
        sent = send([source], receiver.address)
    assert _verdicts(list(sent.files))["tree/a/one (1).txt"] == "kept"
    assert (tmp_path / "in/tree/a/one.txt").read_text() == "one"


def test_links_are_never_followed_by_the_receiver(tmp_path: Path) -> None:
    source = _tree(tmp_path / "tree")
    with Receiver(tmp_path / "in", "127.0.0.1:0") as receiver:
        send([source], receiver.address)
        there, outside = tmp_path / "in/tree/a/b", tmp_path / "outside"
        for name in ("two.txt", "same.txt"):
            (there / name).unlink()
        there.rmdir()
        outside.mkdir()
        there.symlink_to(outside)
        sent = send([source], receiver.address)
    assert list(outside.iterdir()) == []
    refused = [row for row in sent.missing if row["verdict"] == "refused"]
    assert {Path(row["file"]).name for row in refused} >= {"two.txt", "same.txt", "b"}


def test_what_cannot_be_sent_of_a_folder_is_said(invoke: Invoke, tmp_path: Path) -> None:
    source = _tree(tmp_path / "tree")
    os.mkfifo(source / "pipe")
    (source / "out").symlink_to("/etc/passwd")
    (source / "up").symlink_to("../../x")
    (source / "a" / "re\u00adport").write_text("a name that looks like another")
    with Receiver(tmp_path / "in", "127.0.0.1:0") as receiver:
        result = invoke("send", str(source), receiver.address, "--json")
    said = json.loads(result.stdout)
    skipped = {Path(item["file"]).name: item["missing"] for item in said["session"]["skipped"]}
    assert skipped == {"pipe": False, "out": True, "up": True}
    refused = [row for row in said["rows"] if row["verdict"] == "refused"]
    assert [row["reason"] for row in refused] == [
        "the name 'report' has a character that cannot be seen"
    ]
    assert "1 of 4 files, 4 folders, 1 link did not arrive" in result.stderr
    there = trees.entries(tmp_path / "in" / "tree")
    assert "a/b/two.txt" in there
    assert not {"out", "up", "pipe"} & there.keys()


def test_a_receiver_may_refuse_folders(invoke: Invoke, tmp_path: Path) -> None:
    source = _tree(tmp_path / "tree")
    with Receiver(tmp_path / "in", "127.0.0.1:0", folders=False) as receiver:
        sent = send([source], receiver.address)
        alone = send([source / "a" / "one.txt"], receiver.address)
        result = invoke("send", str(source), receiver.address, "--stack", "udp")
    assert {row["reason"] for row in sent.missing} >= {"the receiver takes no folders"}
    assert alone.missing == []
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["one.txt"]
    assert "with the stack udp: it sends files, and no folders" in result.stderr


def test_the_present_folder_has_a_name_too(tmp_path: Path) -> None:
    source = _tree(tmp_path / "tree")
    with Receiver(tmp_path / "in", "127.0.0.1:0") as receiver:
        subprocess.run(
            [sys.executable, "-m", "weir", "send", ".", receiver.address],
            cwd=source,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            timeout=PATIENCE_S,
            check=True,
            capture_output=True,
        )
    assert trees.entries(tmp_path / "in" / "tree") == trees.entries(source)


@pytest.mark.parametrize("hole", [0, 1 << 20, 5 << 20])
def test_holes_are_holes_again(tmp_path: Path, hole: int) -> None:
    source = tmp_path / "image"
    with source.open("wb") as file:
        file.write(b"begin")
        file.truncate((6 << 20) + 123)
        file.seek(hole)
        file.write(os.urandom(300_000))
    with Receiver(tmp_path / "in", "127.0.0.1:0") as receiver:
        sent = send([source], receiver.address)
    assert sent.missing == []
    assert (tmp_path / "in" / "image").read_bytes() == source.read_bytes()
    assert sent.session["sent_bytes"] < 1 << 20
    assert (tmp_path / "in" / "image").stat().st_blocks * 512 < 1 << 20
