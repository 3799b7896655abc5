"""Files over real sockets on loopback: what arrives, what is resumed, what is said if it fails."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import requires
from conftest import PATIENCE_S, Invoke, started, until

from weir import _native
from weir.transfer.files import SendSession, send


class _StopReceivingError(Exception):
    pass


USUAL = {"folders": True, "memory": "64mib", "quota": None, "partial_expiry": "168h"}


class Receiver:
    """A receiver in a thread of its own."""

    def __init__(self, folder: Path, **limits: Any) -> None:
        self.folder, self.address = folder, ""
        self.rows: list[dict[str, Any]] = []
        self.failures: list[str] = []
        self.bytes_done = 0
        self._listening, self._stop = threading.Event(), threading.Event()
        self._limits = {"max_size": None, "max_files": 100, "once": False, **USUAL, **limits}
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Receiver:
        self._thread.start()
        assert self._listening.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with suppress(_StopReceivingError):
            _native.receive_files(
                self.folder, "127.0.0.1:0", on_event=self._on_event, **self._limits
            )

    def _on_event(self, kind: str, facts: dict[str, Any]) -> None:
        if kind == "listening":
            self.address = facts["address"]
            self._listening.set()
        if kind == "progress":
            self.bytes_done = facts["bytes_done"]
        if kind == "ended":
            self.rows += facts["rows"]
            self.failures += [facts["failure"]] if facts["failure"] else []
        if self._stop.is_set():
            raise _StopReceivingError


def _file(path: Path, size: int) -> Path:
    path.write_bytes(os.urandom(size))
    return path


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def _recv(folder: Path, bind: str, *args: str, **options: Any) -> Iterator[tuple[Any, str]]:
    """`weir recv` as a process, and where it listens."""
    with started("recv", "--dir", folder, "--bind", bind, *args, **options) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("listening on "), line + process.stderr.read()
        yield process, line.removeprefix("listening on ").split(",")[0]


def _arrived(folder: Path) -> int:
    """How much the journal of the only partial file says is there: it lies behind the content."""
    for path in folder.glob(".weir-*.part"):
        tail = path.read_bytes()[-64:]
        if tail.startswith(b"weirpart"):
            return int.from_bytes(tail[8:16])
    return 0


def test_at_a_terminal_where_it_listens_is_a_line_of_its_own(tmp_path: Path) -> None:
    screen, terminal = os.openpty()
    options = {"stderr": terminal, "env": {**os.environ, "TERM": "xterm"}}
    with started("recv", "--dir", tmp_path, "--bind", "127.0.0.1:0", **options):
        os.close(terminal)
        shown = b""
        while b"Ctrl-C ends" not in shown:
            shown += os.read(screen, 4096)
    os.close(screen)
    before = shown.partition(b"listening on")[0]
    assert b"bytes" in before, "the bar comes first"
    assert before.endswith(b"\r\x1b[2K"), shown


def test_several_files_arrive_and_are_reported(invoke: Invoke, tmp_path: Path) -> None:
    files = [_file(tmp_path / f"{size}.bin", size) for size in (0, 1, 28_000, 2_800_000)]
    with Receiver(tmp_path / "in") as receiver:
        result = invoke("send", *files, receiver.address, "--json")
        again = invoke("send", files[3], receiver.address)
        _file(files[2], 1000)
        other = invoke("send", files[2], receiver.address, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["schema"], document["command"]) == (1, "send")
    assert [row["verdict"] for row in document["rows"]] == ["kept"] * 4
    assert [row["size_bytes"] for row in document["rows"]] == [0, 1, 28_000, 2_800_000]
    assert again.exit_code == 0
    assert "already there" in again.stdout
    assert json.loads(other.stdout)["rows"][0]["saved_as"] == "28000 (1).bin"
    assert _names(receiver.folder) == [
        "0.bin",
        "1.bin",
        "28000 (1).bin",
        "28000.bin",
        "2800000.bin",
    ]
    for path in (files[0], files[1], files[3]):
        assert (receiver.folder / path.name).read_bytes() == path.read_bytes()
    for row in receiver.rows:
        if row["verdict"] == "kept":
            assert row["began_ns"] <= row["arrived_ns"] <= row["verified_ns"]


@pytest.mark.parametrize(
    "options",
    [
        ("--stack", "stop-and-wait/none"),
        ("--stack", "go-back-n/none", "--window", "30"),
        ("--stack", "selective-repeat(30)/none"),
        ("--stack", "rack/cubic", "--mss", "64b"),
        ("--stack", "sack/reno", "--mss", "65000b"),
        ("--rate", "80mbit", "--initial-window", "100"),
    ],
    ids=" ".join,
)
def test_any_transport_brings_the_file(
    invoke: Invoke, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = _file(tmp_path / "a.bin", 200_000)
    with Receiver(tmp_path / "in") as receiver:
        result = invoke("send", path, receiver.address, *options)
    assert result.exit_code == 0, result.output
    assert (receiver.folder / "a.bin").read_bytes() == path.read_bytes()


def test_senders_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    same = _file(tmp_path / "same.bin", 3_000_000)
    own = [_file(tmp_path / f"{n}.bin", 1_000_000) for n in range(3)]
    with Receiver(tmp_path / "in") as receiver:
        threads = [
            threading.Thread(target=_send, args=([path, same], receiver.address)) for path in own
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert _names(receiver.folder) == ["0.bin", "1.bin", "2.bin", "same.bin"]
    for path in (*own, same):
        assert (receiver.folder / path.name).read_bytes() == path.read_bytes()


def _send(paths: list[Path], target: str) -> SendSession:
    session = send(paths, target, stack="rack/bbr", max_retransmits=10).session
    assert session["complete"], session
    return session


def test_a_killed_sender_goes_on_from_what_arrived(invoke: Invoke, tmp_path: Path) -> None:
    path, folder = _file(tmp_path / "big.bin", 8_000_000), tmp_path / "in"
    with Receiver(folder) as receiver:
        with started("send", path, receiver.address, "--rate", "40mbit") as sender:
            until(lambda: _arrived(folder) > 5_000_000)
            sender.kill()
        result = invoke("send", path, receiver.address, "--rate", "40mbit", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["rows"][0]["resumed_from_bytes"] > 5_000_000
    assert document["session"]["sent_bytes"] < 7_900_000
    assert _names(folder) == ["big.bin"]
    assert (folder / "big.bin").read_bytes() == path.read_bytes()


def test_a_killed_receiver_goes_on_and_its_sender_finds_it_again(tmp_path: Path) -> None:
    path, folder = _file(tmp_path / "big.bin", 8_000_000), tmp_path / "in"
    how = ("--rate", "40mbit", "--json")
    with _recv(folder, "127.0.0.1:0") as (first, address):
        sending = started("send", path, address, *how)
        with sending as sender:
            until(lambda: _arrived(folder) > 500_000)
            first.kill()
            first.wait()
            with _recv(folder, address, "--once", "--json") as (second, _):
                received = json.loads(second.communicate(timeout=PATIENCE_S)[0])
                sent = json.loads(sender.communicate(timeout=PATIENCE_S)[0])
    assert (sender.returncode, second.returncode) == (0, 0)
    assert received["rows"][0]["resumed_from_bytes"] > 500_000
    assert sent["session"]["reconnects"] == 1
    assert sent["session"]["sent_bytes"] < 15_000_000
    assert (folder / "big.bin").read_bytes() == path.read_bytes()


def test_an_interrupted_sender_says_so_and_leaves_what_arrived(tmp_path: Path) -> None:
    path, folder = _file(tmp_path / "big.bin", 8_000_000), tmp_path / "in"
    with Receiver(folder) as receiver:
        with started("send", path, receiver.address, "--rate", "20mbit") as sender:
            until(lambda: _arrived(folder) > 100_000)
            sender.send_signal(signal.SIGINT)
            _, stderr = sender.communicate(timeout=PATIENCE_S)
        until(lambda: bool(receiver.failures))
        assert sender.returncode == 130
        assert "interrupted; what has arrived is kept" in stderr
        assert receiver.rows[0]["verdict"] == "incomplete"
        assert _arrived(folder) > 100_000


def test_an_interrupted_receiver_says_so(tmp_path: Path) -> None:
    with _recv(tmp_path / "in", "127.0.0.1:0") as (receiver, _):
        receiver.send_signal(signal.SIGINT)
        _, stderr = receiver.communicate(timeout=PATIENCE_S)
    assert receiver.returncode == 130
    assert "stopped; what has arrived is kept" in stderr


def test_what_is_not_wanted_is_refused_with_a_reason(invoke: Invoke, tmp_path: Path) -> None:
    small, large = _file(tmp_path / "small.bin", 1000), _file(tmp_path / "large.bin", 2000)
    with Receiver(tmp_path / "in", max_size="1500b", max_files=2) as receiver:
        result = invoke("send", small, large, receiver.address)
        crowd = invoke("send", small, small, small, receiver.address)
    assert (result.exit_code, crowd.exit_code) == (1, 1)
    assert "'" + str(large) + "': 2000 bytes; at most 1500 are taken" in _line(result)
    assert "3 files at once; at most 2 are taken" in _line(crowd)
    assert _names(receiver.folder) == ["small.bin"]


def test_a_quota_bounds_what_all_senders_leave(invoke: Invoke, tmp_path: Path) -> None:
    first, second = _file(tmp_path / "1.bin", 1_000_000), _file(tmp_path / "2.bin", 1_000_000)
    with Receiver(tmp_path / "in", quota="1500kb") as receiver:
        kept = invoke("send", first, receiver.address)
        refused = invoke("send", second, receiver.address)
        again = invoke("send", first, receiver.address)
    assert (kept.exit_code, refused.exit_code, again.exit_code) == (0, 1, 0)
    assert "1000000 bytes; the quota of 1500000 has" in _line(refused)
    assert _names(receiver.folder) == ["1.bin"]


def test_a_full_disk_is_reported_to_the_sender(invoke: Invoke, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    path, folder = _file(tmp_path / "big.bin", 3_000_000), tmp_path / "in"
    with _recv(folder, "127.0.0.1:0", "--once", preexec_fn=limit) as (receiver, address):
        result = invoke("send", path, address)
        _, stderr = receiver.communicate(timeout=PATIENCE_S)
    assert result.exit_code == 1
    assert "cannot write 'big.bin': File too large" in _line(result)
    assert receiver.returncode == 1
    assert "cannot write 'big.bin': File too large" in stderr
    assert "big.bin" not in _names(folder)


def test_a_file_that_changes_while_it_is_sent_does_not_arrive(tmp_path: Path) -> None:
    path, folder = _file(tmp_path / "big.bin", 4_000_000), tmp_path / "in"
    with (
        Receiver(folder) as receiver,
        started("send", path, receiver.address, "--rate", "20mbit") as sender,
    ):
        until(lambda: _arrived(folder) > 100_000)
        with path.open("r+b") as file:
            file.seek(3_900_000)
            file.write(b"changed")
        _, stderr = sender.communicate(timeout=PATIENCE_S)
    assert sender.returncode == 1
    assert "the received data has another hash" in stderr
    assert "big.bin" not in _names(folder)


@pytest.mark.parametrize("change", ["grows", "is replaced", "gets other times", "is removed"])
def test_a_file_that_changes_in_any_way_is_reported(tmp_path: Path, change: str) -> None:
    """Also where what was announced has arrived."""
    path, folder = _file(tmp_path / "big.bin", 1_000_000), tmp_path / "in"
    content = path.read_bytes()
    with (
        Receiver(folder) as receiver,
        started("send", path, receiver.address, "--rate", "10mbit") as sender,
    ):
        until(lambda: _arrived(folder) > 100_000)
        if change == "grows":
            with path.open("ab") as file:
                file.write(b"more")
        elif change == "gets other times":
            os.utime(path, (1, 1))
        else:
            path.unlink()
            if change == "is replaced":
                path.write_bytes(content)
        _, stderr = sender.communicate(timeout=PATIENCE_S)
    assert (sender.returncode, "changed during the transfer" in stderr) == (1, True), stderr
    assert (folder / "big.bin").read_bytes() == content


@pytest.mark.parametrize(("options", "name"), [((), "stdin"), (("--name", "x.tar"), "x.tar")])
def test_standard_input_is_sent(tmp_path: Path, options: tuple[str, ...], name: str) -> None:
    source = _file(tmp_path / "source", 700_000)
    with (
        Receiver(tmp_path / "in") as receiver,
        source.open("rb") as stdin,
        started("send", "-", receiver.address, *options, stdin=stdin) as sender,
    ):
        out, err = sender.communicate(timeout=PATIENCE_S)
    assert sender.returncode == 0, (out, err)
    assert "weir-send-" not in out, "a temporary path is not shown"
    assert (tmp_path / "in" / name).read_bytes() == source.read_bytes()


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("no-such.bin", "127.0.0.1:9"), 2, "there is no file or folder 'no-such.bin'"),
        (("-", "-", "127.0.0.1:9"), 2, "'-' is standard input, which can be sent once"),
        (("a.bin", "127.0.0.1:9", "--name", "x"), 2, "--name x: the name of what is read from"),
        (("-", "127.0.0.1:9", "--name", "a/b"), 2, "--name a/b: the name of what is read from"),
        (("127.0.0.1:9",), 2, "FILE... and HOST:PORT are required"),
        (("a.bin", "127.0.0.1"), 2, "'127.0.0.1' is no address"),
        (("a.bin", "no-such-host.invalid:9"), 2, "cannot find the host"),
        (("a.bin", "127.0.0.1:9", "--stack", "rack/warp"), 2, "unknown controller 'warp'"),
        (("a.bin", "127.0.0.1:9", "--mss", "10b"), 2, "mss 10 is not between 64 and 65447"),
        (("a.bin", "127.0.0.1:9", "--window", "9", "--stack", "bbr"), 2, "computes its window"),
        (("a.bin", "127.0.0.1:9", "--rate", "fast"), 2, "--rate: 'fast' is not a rate"),
        (("a.bin", "127.0.0.1:9"), 1, "no program listens on UDP address 127.0.0.1:9"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_sent_is_said_in_one_line(
    invoke: Invoke, tmp_path: Path, args: tuple[str, ...], code: int, text: str
) -> None:
    _file(tmp_path / "a.bin", 10)
    result = invoke("send", *args)
    assert result.exit_code == code
    assert text in _line(result)


def test_silence_is_given_up_and_said_for_how_long(invoke: Invoke, tmp_path: Path) -> None:
    path = _file(tmp_path / "a.bin", 10)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        target = f"127.0.0.1:{silent.getsockname()[1]}"
        result = invoke("send", path, target, "--max-wait", "300ms")
    assert result.exit_code == 1
    assert f"no answer from {target} (tried for 0.3 s)" in _line(result)


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("--bind", "somewhere"), 2, "'somewhere' is no ADDR:PORT"),
        (("--bind", "192.0.2.1:0"), 1, "192.0.2.1:0"),
        (("--dir", "a.bin", "--bind", "127.0.0.1:0"), 1, "cannot use 'a.bin'"),
        (("--max-size", "5x"), 2, "--max-size: '5x' is not a size"),
        (("--memory", "4mb", "--bind", "somewhere"), 2, "--memory 4mb: at least 4mib are needed"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_received_is_said_in_one_line(
    invoke: Invoke, tmp_path: Path, args: tuple[str, ...], code: int, text: str
) -> None:
    _file(tmp_path / "a.bin", 10)
    result = invoke("recv", *args)
    assert result.exit_code == code
    assert text in _line(result)


def _line(result: Any) -> str:
    assert result.stderr.startswith("weir: "), result.output
    assert result.stderr.count("\n") == 1
    return str(result.stderr)


def test_a_window_follows_the_marks_of_a_relay(tmp_path: Path, invoke: Invoke) -> None:
    """TCP Muzha over a relay with feedback, compared with Reno over the same without."""
    file = _file(tmp_path / "big.bin", 2_000_000)
    feedback_key = ("feedback", "{ kind = 'drai', memory = '40ms' }")
    dropped = {}
    for stack, feedback in (("newreno/muzha", [feedback_key]), ("newreno/reno", [])):
        controller = stack.partition("/")[2]
        trace = tmp_path / f"{controller}.csv"
        with Receiver(tmp_path / controller) as receiver:
            path = [("rate", "10mbit"), ("delay", "20ms"), ("queue", "64p"), *feedback]
            ends = ["127.0.0.1:0", receiver.address]
            relay = _native.UdpRelay(ends, path, ["", ""], False, 1, 10, "60s")
            asked = ("send", file, relay.address, "--stack", stack, "--trace", trace, "--json")
            result = invoke(*map(str, asked))
            assert result.exit_code == 0, result.stderr
        report = relay.stop()
        assert (tmp_path / controller / "big.bin").read_bytes() == file.read_bytes()
        up, down = report["up"], report["down"]
        dropped[controller] = up["queue_dropped"]
        # Acknowledgements return what they met, and carry nothing past routers.
        assert (down["stamped"], down["lowest_index"]) == (0, None)
        if not feedback:
            assert (up["stamped"], up["lowest_index"]) == (0, None)
            continue
        segments = json.loads(result.stdout)["session"]["segments"]
        assert segments <= up["stamped"] <= up["received"]
        # The window is larger than what the link holds, so the feedback has slowed the sender down.
        assert up["lowest_index"] is not None
        assert up["lowest_index"] < 3
        head, *rows = trace.read_text().splitlines()
        assert head == "time_s,cwnd_bytes,srtt_ms,bytes_done,segments,retransmits"
        windows = [int(row.split(",")[1]) for row in rows]
        assert any(after < before for before, after in pairwise(windows))
    assert dropped["muzha"] < dropped["reno"]


def test_a_receiver_in_the_background_of_a_script_heeds_interrupts(tmp_path: Path) -> None:
    """A shell without job control has SIGINT ignored by what it starts in the background."""
    address = ("--dir", tmp_path, "--bind", "127.0.0.1:0")
    ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    with started("recv", *address, **ignoring) as receiver:
        assert receiver.stderr is not None
        assert "listening" in receiver.stderr.readline()
        receiver.send_signal(signal.SIGINT)
        assert receiver.wait(timeout=20) == 130


@requires.namespaces
def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    """Its mount is read-only, which holds for root too."""
    receive = f"{sys.executable} -m weir recv --dir {tmp_path} --bind 127.0.0.1:0"
    mounted = f"mount -t tmpfs -o ro none {tmp_path} && exec {receive}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mounted],  # noqa: S607
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 1
    assert done.stderr == f"weir: cannot use '{tmp_path}': Read-only file system\n"
