"""One flood: a receiver, attackers, honest senders, and what is measured."""

from __future__ import annotations

import json
import multiprocessing
import multiprocessing.sharedctypes
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.flood.attackers import ANSWERED, KINDS, Target
from bench.flood.segments import Address
from weir.transfer import files

MEMORY_BOUND_MIB = 100
SLOWER_BY_AT_MOST = 2.0
UNSERVED_AT_MOST_S = 5.0
KNOWN_BYTES = 20_000_000
_WORKERS = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a flood has done."""

    steps_per_s: int
    steps: int
    """Steps of attackers: a datagram sent, or a connection opened and misused."""
    peak_rss_mib: float
    alone_s: float
    """The large file without attackers."""
    attacked_s: float
    """The large file under attack."""
    small_served: int
    longest_unserved_s: float
    """The longest time between two small files that arrived."""
    alive: bool
    heard: dict[str, int]
    """By kind of attacker that has an answer to expect: how many it had,"""
    turned_away: dict[str, int]
    """and how often it was turned away because of its form."""

    def faults(self) -> list[str]:
        """What does not hold."""
        slower = self.attacked_s / self.alone_s
        claims = {
            "the receiver lives": self.alive,
            f"memory under {MEMORY_BOUND_MIB} MiB": self.peak_rss_mib < MEMORY_BOUND_MIB,
            f"the large file at most {SLOWER_BY_AT_MOST:g} times as long": slower
            <= SLOWER_BY_AT_MOST,
            f"a small file served every {UNSERVED_AT_MOST_S:g} s": self.longest_unserved_s
            <= UNSERVED_AT_MOST_S,
        }
        for kind, count in self.heard.items():
            claims[f"'{kind}' attacks and is not turned away for its form"] = (
                count > 0 and count > self.turned_away[kind]
            )
        return [claim for claim, holds in claims.items() if not holds]


@dataclass(frozen=True, slots=True)
class Flood:
    """How large it is."""

    seconds: float = 60.0
    per_s: int = 2_000
    """Steps of all attackers per second."""
    large_bytes: int = 60_000_000
    rate: str = "100mbit"
    """Of the honest sender."""
    seed: int = 1
    kinds: tuple[str, ...] = tuple(KINDS)


def run(flood: Flood) -> Outcome:
    """Measures one flood."""
    with tempfile.TemporaryDirectory(prefix="weir-flood-") as name:
        folder = Path(name)
        with receiver(folder / "in") as (process, address):
            recorded, known = record(folder, address)
            alone_s = _send(_file(folder / "alone", flood.large_bytes), address, flood.rate)
            target = Target(address, tuple(recorded), known, KNOWN_BYTES)
            memory, small = _Memory(process.pid), _Small(folder, address)
            with _attackers(flood, target) as steps:
                time.sleep(min(2.0, flood.seconds / 4))
                ends = time.monotonic() + flood.seconds - min(2.0, flood.seconds / 4)
                attacked_s = _send(_file(folder / "large", flood.large_bytes), address, flood.rate)
                while time.monotonic() < ends and process.poll() is None:
                    time.sleep(0.05)
                small.stop()
                done, heard, turned_away = steps()
            alive = process.poll() is None
            memory.stop()
    return Outcome(
        steps_per_s=flood.per_s,
        steps=done,
        peak_rss_mib=memory.peak_kib / 1024,
        alone_s=alone_s,
        attacked_s=attacked_s,
        small_served=small.served,
        longest_unserved_s=small.longest_s,
        alive=alive,
        heard=heard,
        turned_away=turned_away,
    )


@contextmanager
def receiver(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], Address]]:
    """Runs `weir recv`; yields it and where it listens."""
    command = [sys.executable, "-m", "weir", "recv", "--dir", str(folder)]
    command += ["--bind", "127.0.0.1:0", *options]
    null = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=null, stderr=subprocess.PIPE, text=True) as process:
        try:
            heard = process.stderr.readline() if process.stderr else ""
            found = re.search(r"listening on (\S+):(\d+)", heard)
            if found is None:
                raise RuntimeError(f"weir recv does not listen: {heard}")
            threading.Thread(target=_follow, args=(process,), daemon=True).start()
            yield process, (found[1], int(found[2]))
        finally:
            process.kill()


def _follow(process: subprocess.Popen[str]) -> None:
    """Reads what the receiver says, and repeats it if it ends by itself."""
    _, said = process.communicate()
    if process.returncode not in {0, -signal.SIGKILL}:
        print(f"the receiver ended ({process.returncode}): {said[-2_000:]}", file=sys.stderr)


def _file(path: Path, size: int) -> Path:
    path.write_bytes(os.urandom(size))
    return path


def _send(path: Path, address: Address, rate: str) -> float:
    """Sends a file by a process of its own; returns its time in seconds."""
    to = f"{address[0]}:{address[1]}"
    command = [sys.executable, "-m", "weir", "send", str(path), to]
    command += ["--json", "--quiet", "--rate", rate]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"the honest sender failed: {done.stderr.strip()}", file=sys.stderr)
        return max(time.monotonic() - began, float("inf"))
    return float(json.loads(done.stdout)["rows"][0]["time_s"])


def record(folder: Path, receiver: Address) -> tuple[list[bytes], bytes]:
    """Datagrams of a transfer to the receiver, and the hash of the file that it has now."""
    path = _file(folder / "known", KNOWN_BYTES)
    recorded: list[bytes] = []
    front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    front.bind(("127.0.0.1", 0))
    back.connect(receiver)
    senders: list[Address] = []

    def forth() -> None:
        while True:
            datagram, sender = front.recvfrom(65535)
            senders[:] = [sender]
            if len(recorded) < 500:
                recorded.append(datagram)
            back.send(datagram)

    def and_back() -> None:
        while True:
            datagram = back.recv(65535)
            if senders:
                front.sendto(datagram, senders[0])

    for work in (forth, and_back):
        threading.Thread(target=work, daemon=True).start()
    to = "{}:{}".format(*front.getsockname())
    (row,) = _sent(path, to).files
    return recorded, bytes.fromhex(row["blake3"] or "")


def _sent(path: Path, to: str) -> files.Sent:
    return files.send([path], to, stack="rack/bbr", rate="100mbit")


class _Memory:
    """The most that a process has held, from now on."""

    def __init__(self, pid: int) -> None:
        self.peak_kib = 0
        self._status, self._over = Path(f"/proc/{pid}/status"), threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> None:
        """Ends the watch."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            try:
                found = re.search(r"VmRSS:\s+(\d+) kB", self._status.read_text())
            except OSError:
                return
            self.peak_kib = max(self.peak_kib, int(found[1]) if found else 0)


class _Small:
    """Sends a new small file again and again, and notes for how long none arrives."""

    def __init__(self, folder: Path, address: Address) -> None:
        self.served, self.longest_s = 0, 0.0
        self._path, self._to = folder / "small", f"{address[0]}:{address[1]}"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go)
        self._thread.start()

    def stop(self) -> None:
        """Ends it; what is not served by now counts."""
        self._over.set()
        self._thread.join()

    def _go(self) -> None:
        served_at = time.monotonic()
        while not self._over.wait(0.25):
            path = self._path.with_name(f"small-{self.served}")
            path.write_bytes(os.urandom(1_000))
            try:
                arrived = not _sent(path, self._to).missing
            except files.FailedError:
                arrived = False
            now = time.monotonic()
            self.longest_s = max(self.longest_s, now - served_at)
            if arrived:
                served_at = now
                self.served += 1


@contextmanager
def _attackers(
    flood: Flood, target: Target
) -> Iterator[Callable[[], tuple[int, dict[str, int], dict[str, int]]]]:
    """Runs the attackers.

    Yields a function that returns the number of their steps, of answers that they wanted, and of
    answers that turned them away, both by kind.
    """
    spawn = multiprocessing.get_context("spawn")
    answered = [kind for kind in flood.kinds if kind in ANSWERED]
    counts = [spawn.Array("q", 1 + 2 * len(answered)) for _ in range(_WORKERS)]
    workers = [
        spawn.Process(target=_work, args=(flood, target, n, answered, counts[n]), daemon=True)
        for n in range(_WORKERS)
    ]

    def counted() -> tuple[int, dict[str, int], dict[str, int]]:
        steps, *answers = (sum(each) for each in zip(*counts, strict=True))
        heard, turned_away = answers[: len(answered)], answers[len(answered) :]
        return (
            steps,
            dict(zip(answered, heard, strict=True)),
            dict(zip(answered, turned_away, strict=True)),
        )

    for worker in workers:
        worker.start()
    try:
        yield counted
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def _work(
    flood: Flood,
    target: Target,
    worker: int,
    answered: list[str],
    counts: multiprocessing.sharedctypes.SynchronizedArray[int],
) -> None:
    """Every kind in turn, at the worker's share of the rate."""
    rng = random.Random(f"{flood.seed} {worker}")  # noqa: S311
    kinds = [KINDS[kind](rng, target) for kind in flood.kinds]
    pause = _WORKERS / flood.per_s
    due = time.monotonic()
    steps = 0
    while True:
        for kind in kinds:
            next(kind)
            steps += 1
            due += pause
            time.sleep(max(0.0, due - time.monotonic()))
        heard = [target.heard[kind] for kind in answered]
        counts[:] = [steps, *heard, *(target.turned_away[kind] for kind in answered)]
