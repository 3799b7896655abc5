"""Network namespaces and the emulated link between them; skipped where they cannot be made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import requires

from weir._native import ScenarioError
from weir.processes import netns

ECHO = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.bind((sys.argv[1], 9000))
    print("ready", flush=True)
    while True:
        s.sendto(*s.recvfrom(70_000))
"""
ASK = """
import socket, sys, time
count, size = int(sys.argv[2]), int(sys.argv[3])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.settimeout(30)
    fastest = 60.0
    for number in range(count):
        began = time.monotonic()
        s.sendto(number.to_bytes(4, "big") + bytes(size - 4), (sys.argv[1], 9000))
        if number + 1 not in map(int, sys.argv[4:]):
            answer = s.recv(70_000)
            assert answer[:4] == number.to_bytes(4, "big") and len(answer) == size
            fastest = min(fastest, time.monotonic() - began)
    print(fastest)
"""


def ask(link: netns.Link, count: int, size: int, *lost: int) -> float:
    """The fastest of ``count`` round trips in seconds; those numbered ``lost`` have no answer."""
    echo = [sys.executable, "-c", ECHO, link.right.address]
    with link.right.start(echo, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            numbers = map(str, (count, size, *lost))
            command = [sys.executable, "-c", ASK, link.right.address, *numbers]
            done = link.left.run(command, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            return float(done.stdout)
        finally:
            server.kill()


@requires.namespaces
def test_a_link_delays_and_loses_as_asked() -> None:
    with netns.joined(delay="10ms", up="drop=[3]", down="delay=15ms") as link:
        assert ask(link, 6, 100, 3) >= 0.025
        report = link.report()
    assert (report["up"]["received"], report["up"]["lost"], report["up"]["sent"]) == (6, 1, 5)
    assert (report["down"]["received"], report["down"]["lost"], report["down"]["sent"]) == (5, 0, 5)
    assert not any(end.file.exists() for end in link)


@requires.namespaces
def test_large_packets_cross_a_link_whole() -> None:
    with netns.joined(mtu=65535) as link:
        ask(link, 3, 60_000)
        assert link.report()["up"]["received"] == 3


@requires.namespaces
def test_mistakes_are_reported_and_leave_no_interfaces() -> None:
    names = Path("/run/netns")
    before = list(names.glob("*"))
    with pytest.raises(ScenarioError, match="--loss=150%"), netns.joined(loss="150%"):
        pass
    with pytest.raises(ValueError, match="boom"), netns.joined():
        raise ValueError("boom")
    assert list(names.glob("*")) == before
    assert not [task for task in Path("/proc/self/task").iterdir() if is_namespace(task)]


def is_namespace(task: Path) -> bool:
    """Whether a thread of ours is that of a namespace."""
    try:
        return (task / "comm").read_text().strip() == "namespace"
    except OSError:
        return False


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(netns.NamespaceError, match="only root"), netns.joined():
        pass
