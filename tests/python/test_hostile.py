"""A receiver under attack, and transfers over a path with all impairments.

`WEIR_HOSTILE=full` runs both at full size and judges the slow-down too, which takes a quiet machine
and some minutes. Without it the same code runs small and judges no time.
"""

from __future__ import annotations

import json
import os
import random
import re
import socket
import statistics
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import started

FULL = os.environ.get("WEIR_HOSTILE") == "full"
TRANSFERS = 200 if FULL else 5
DATAGRAMS = 100_000 if FULL else 4_000
PAIRS = 7 if FULL else 1
FILE_BYTES = 100_000_000 if FULL else 3_000_000
RATE = "200mbit" if FULL else "20mbit"
ATTACKERS = 64
REFUSALS = 10_000 if FULL else 4_000
ROWS_BOUND_KIB = 4 << 10
pytestmark = pytest.mark.timeout(900)
MEMORY_BOUND_KIB = 16 << 10
SLOWER_BY_AT_MOST = 1.1

Address = tuple[str, int]


@contextmanager
def listening(*args: object) -> Iterator[tuple[subprocess.Popen[str], Address]]:
    """A verb that listens, and where it does."""
    with started(*args) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        heard = ""
        for line in process.stderr:
            heard += line
            if found := re.search(r"(?:listening on|relay:) (\S+):(\d+)", line):
                break
        else:
            pytest.fail(f"weir {args} does not listen: {heard}")
        for stream in (process.stderr, process.stdout):
            threading.Thread(target=stream.read, daemon=True).start()
        yield process, (found[1], int(found[2]))


def send(path: Path, to: Address, *args: object) -> dict[str, object]:
    """Sends a file; returns the row about it."""
    with started("send", path, f"{to[0]}:{to[1]}", "--json", "--quiet", *args) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    row: dict[str, object] = json.loads(out)["rows"][0]
    return row


def test_everything_arrives_through_a_hostile_network(tmp_path: Path) -> None:
    rng = random.Random(4)  # noqa: S311
    inbox = tmp_path / "in"
    faults = ("--loss", "10%", "--jitter", "5ms", "--corrupt", "1%", "--duplicate", "1%")
    with (
        listening("recv", "--dir", inbox, "--bind", "127.0.0.1:0") as (_, receiver),
        listening(
            "relay", "--listen", "127.0.0.1:0", "--to", f"{receiver[0]}:{receiver[1]}", *faults
        ) as (_, relay),
    ):
        for n in range(TRANSFERS):
            path = tmp_path / f"file-{n}"
            path.write_bytes(rng.randbytes(int(10 ** rng.uniform(0, 6))))
            send(path, relay)
            assert (inbox / path.name).read_bytes() == path.read_bytes()
    assert len([path for path in inbox.iterdir() if not path.name.startswith(".")]) == TRANSFERS


class Recorder:
    """Passes datagrams on between a sender and a receiver, and keeps some of both."""

    def __init__(self, receiver: Address) -> None:
        self.kept: list[bytes] = []
        self._front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._front.bind(("127.0.0.1", 0))
        self._back.connect(receiver)
        self._sender: Address | None = None
        self.address: Address = self._front.getsockname()
        threading.Thread(target=self._forth, daemon=True).start()
        threading.Thread(target=self._back_again, daemon=True).start()

    def _forth(self) -> None:
        while True:
            datagram, self._sender = self._front.recvfrom(65535)
            self._keep(datagram)
            self._back.send(datagram)

    def _back_again(self) -> None:
        while True:
            datagram = self._back.recv(65535)
            self._keep(datagram)
            if self._sender:
                self._front.sendto(datagram, self._sender)

    def _keep(self, datagram: bytes) -> None:
        if len(self.kept) < 2_000:
            self.kept.append(datagram)


def hostile(rng: random.Random, recorded: Sequence[bytes], count: int) -> list[bytes]:
    """Random bytes, openings, replays of real datagrams and real ones that were changed."""
    openings = [datagram for datagram in recorded[:3] if len(datagram) < 200]

    def changed(datagram: bytes) -> bytes:
        mutable = bytearray(datagram)
        for _ in range(rng.randrange(1, 4)):
            mutable[rng.randrange(len(mutable))] ^= 1 << rng.randrange(8)
        return bytes(mutable[: rng.randrange(1, len(mutable) + 1)])

    def opening(datagram: bytes) -> bytes:
        """From other ports, with the checksum put right."""
        segment = bytearray(rng.randbytes(2) + datagram[2:16] + b"\0\0" + datagram[18:])
        padded = bytes(segment) + b"\0" * (len(segment) % 2)
        total = (
            6
            + len(segment)
            + sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
        )
        while total > 0xFFFF:
            total = (total & 0xFFFF) + (total >> 16)
        segment[16:18] = (~total & 0xFFFF).to_bytes(2, "big")
        return bytes(segment)

    kinds = (
        lambda: rng.randbytes(rng.randrange(1, 1_473)),
        lambda: opening(rng.choice(openings)),
        lambda: rng.choice(recorded),
        lambda: changed(rng.choice(recorded)),
    )
    return [rng.choice(kinds)() for _ in range(count)]


@dataclass(frozen=True)
class Visit:
    """A transfer, and what it took."""

    seconds: float
    peak_kib: int


def visit(tmp_path: Path, path: Path, volley: Sequence[bytes], *args: object) -> Visit:
    """A transfer to a new receiver, while attackers send the volley to it."""
    inbox = tmp_path / "in"
    with listening("recv", "--dir", inbox, "--bind", "127.0.0.1:0", *args) as (process, receiver):
        over = threading.Event()
        thrown = [0]

        def throw() -> None:
            sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(ATTACKERS)]
            # In step with the transfer, so that all of it is under attack.
            pause = len(volley) and 0.8 * FILE_BYTES * 8 / _bits_per_second() / len(volley)
            for n, datagram in enumerate(volley):
                sockets[n % ATTACKERS].sendto(datagram, receiver)
                thrown[0] += 1
                if n % 100 == 99:
                    over.wait(100 * pause)
            for each in sockets:
                each.close()

        attackers = threading.Thread(target=throw)
        attackers.start()
        row = send(path, receiver, "--rate", RATE, *args)
        over.set()
        attackers.join()
        assert thrown[0] == len(volley)
        # Whatever was thrown last has been dealt with when another transfer is through.
        last = tmp_path / "last"
        last.write_bytes(b"still here")
        send(last, receiver, *args)
        assert process.poll() is None
        assert (inbox / "last").read_bytes() == b"still here"
        assert (inbox / path.name).read_bytes() == path.read_bytes()
        status = Path(f"/proc/{process.pid}/status").read_text()
    for kept in inbox.iterdir():
        kept.unlink()
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert peak
    assert isinstance(row["time_s"], float)
    return Visit(row["time_s"], int(peak[1]))


def _bits_per_second() -> int:
    return int(RATE.removesuffix("mbit")) * 1_000_000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
@pytest.mark.parametrize("sealed", [False, True], ids=["clear", "sealed"])
def test_attackers_neither_crash_nor_fill_a_receiver(tmp_path: Path, sealed: bool) -> None:
    rng = random.Random(5)  # noqa: S311
    path = tmp_path / "file"
    path.write_bytes(rng.randbytes(FILE_BYTES))
    args: tuple[object, ...] = ()
    if sealed:
        key = tmp_path / "key"
        key.write_text(rng.randbytes(32).hex())
        args = ("--key-file", key)
    volley = hostile(rng, _recorded(tmp_path, args), DATAGRAMS)
    pairs = [
        (visit(tmp_path, path, [], *args), visit(tmp_path, path, volley, *args))
        for _ in range(PAIRS)
    ]
    more_kib = max(attacked.peak_kib - alone.peak_kib for alone, attacked in pairs)
    slower = statistics.median(attacked.seconds / alone.seconds for alone, attacked in pairs)
    print(f"{DATAGRAMS} datagrams: {more_kib} KiB more, {slower:.3f} times as long")
    assert more_kib <= MEMORY_BOUND_KIB
    if FULL:
        assert slower <= SLOWER_BY_AT_MOST


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
@pytest.mark.parametrize("args", [(), ("--json",)], ids=["tables", "json"])
def test_thousands_of_refusals_do_not_stop_a_receiver(
    tmp_path: Path, args: tuple[str, ...]
) -> None:
    """Each costs its sender 50 bytes: the receiver neither draws nor keeps a row for it."""
    inbox, many = tmp_path / "in", [tmp_path / f"{n}" for n in range(REFUSALS)]
    for path in many:
        path.write_bytes(b"12")
    small = tmp_path / "small"
    small.write_bytes(b"1")
    options = ("--dir", inbox, "--bind", "127.0.0.1:0", "--max-size", "1b", *args)
    with listening("recv", *options) as (process, receiver):
        resident = []
        for _ in range(2):
            refused = ("send", *many, f"{receiver[0]}:{receiver[1]}", "--json", "--quiet")
            with started(*refused) as sender:
                out, _ = sender.communicate(timeout=300)
            verdicts = [row["verdict"] for row in json.loads(out)["rows"]]
            assert verdicts == ["refused"] * REFUSALS
            row = send(small, receiver, "--max-wait", "3s")
            assert row["verdict"] in {"kept", "already"}
            status = Path(f"/proc/{process.pid}/status").read_text()
            found = re.search(r"VmRSS:\s+(\d+) kB", status)
            assert found
            resident.append(int(found[1]))
    print(f"{resident} KiB after {REFUSALS} refusals each")
    assert resident[1] - resident[0] < ROWS_BOUND_KIB


def _recorded(tmp_path: Path, args: Sequence[object]) -> list[bytes]:
    """The datagrams of a transfer."""
    inbox, path = tmp_path / "recorded", tmp_path / "small"
    path.write_bytes(os.urandom(200_000))
    with listening("recv", "--dir", inbox, "--bind", "127.0.0.1:0", *args) as (_, receiver):
        recorder = Recorder(receiver)
        send(path, recorder.address, *args)
    assert len(recorder.kept) > 100
    return recorder.kept
