"""One flood: a receiver, attackers, honest senders, and what is measured."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.flood.attackers import KINDS
from bench.flood.processes import Attack, attackers
from bench.flood.segments import Address
from bench.flood.target import NETWORKS, Target
from weir.transfer import files

MEMORY_BOUND_MIB = 100
SLOWER_BY_AT_MOST = 2.0
UNSERVED_AT_MOST_S = 5.0
KNOWN_BYTES = 20_000_000
LONGEST_S = 60
"""After this long a transfer has failed."""
ATTAINED_AT_LEAST = 0.5
"""Of the configured rate of attackers: else the machine is too slow for this."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a flood has done."""

    steps_per_s: float
    """Of all attackers; the configured rate is in `Flood`."""
    attained: float
    """These, relative to the configured rate."""
    attack: Attack
    peak_rss_mib: float
    receiver_cpu_s: float
    """What the receiver has computed during the attack, which lasted `seconds`."""
    seconds: float
    alone_s: float
    """The large file without attackers,"""
    elsewhere_s: float
    """while they attack another receiver on this machine,"""
    attacked_s: float
    """and under attack."""
    small_served: int
    longest_unserved_s: float
    """The longest time between two small files that arrived."""
    alive: bool

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
            f"attackers attain {ATTAINED_AT_LEAST:g} of their rate": self.attained
            >= ATTAINED_AT_LEAST,
        }
        return [claim for claim, holds in claims.items() if not holds] + self.attack.faults()


@dataclass(frozen=True, slots=True)
class Flood:
    """How large it is."""

    seconds: float = 60.0
    per_s: int = 400
    """Steps of all attackers per second."""
    large_bytes: int = 60_000_000
    rate: str = "100mbit"
    """Of the honest sender."""
    seed: int = 1
    kinds: tuple[str, ...] = tuple(KINDS)
    addresses: int = NETWORKS


def run(flood: Flood) -> Outcome:
    """Measures one flood."""
    with tempfile.TemporaryDirectory(prefix="weir-flood-") as name:
        folder = Path(name)
        with receiver(folder / "in") as (process, address):
            target = known_target(folder, address, flood.addresses)
            alone_s = _send_new(folder / "alone", address, flood)
            elsewhere_s = _elsewhere(folder, address, flood)
            memory, small = _Memory(process.pid), _Small(folder, address)
            began, computed = time.monotonic(), _cpu_s(process.pid)
            with attackers(target, flood.kinds, flood.per_s, flood.seed) as so_far:
                time.sleep(_BEFORE_S)
                attacked_s = _send_new(folder / "large", address, flood)
                while time.monotonic() < began + flood.seconds and process.poll() is None:
                    time.sleep(0.05)
                attack, seconds = so_far(), time.monotonic() - began
                small.stop()
            alive = process.poll() is None
            computed = _cpu_s(process.pid) - computed if alive else float("nan")
            memory.stop()
    steps_per_s = sum(attack.steps.values()) / seconds
    return Outcome(
        steps_per_s=steps_per_s,
        attained=steps_per_s / flood.per_s,
        attack=attack,
        peak_rss_mib=memory.peak_kib / 1024,
        receiver_cpu_s=computed,
        seconds=seconds,
        alone_s=alone_s,
        elsewhere_s=elsewhere_s,
        attacked_s=attacked_s,
        small_served=small.served,
        longest_unserved_s=small.longest_s,
        alive=alive,
    )


_BEFORE_S = 2.0
"""How long attackers attack before the large file is sent."""


def _elsewhere(folder: Path, address: Address, flood: Flood) -> float:
    """The large file while attackers attack another receiver: what the machine's load costs."""
    with receiver(folder / "other") as (_, other):
        target = known_target(folder, other, flood.addresses)
        with attackers(target, flood.kinds, flood.per_s, flood.seed):
            time.sleep(_BEFORE_S)
            return _send_new(folder / "elsewhere", address, flood)


def _send_new(path: Path, address: Address, flood: Flood) -> float:
    return _send(_file(path, flood.large_bytes), address, flood.rate)


def known_target(folder: Path, address: Address, addresses: int, size: int = KNOWN_BYTES) -> Target:
    """A receiver of which attackers have recorded a transfer."""
    recorded, known = record(folder, address, size)
    return Target(address, tuple(recorded), known, size, addresses)


def _cpu_s(pid: int) -> float:
    """What a process has computed (proc_pid_stat(5)), in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
    """Sends a file by a process of its own; returns its time in seconds, infinite if it failed."""
    to = f"{address[0]}:{address[1]}"
    command = [sys.executable, "-m", "weir", "send", str(path), to]
    command += ["--json", "--quiet", "--rate", rate]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=LONGEST_S
        )
    except subprocess.TimeoutExpired:
        return float("inf")
    if done.returncode:
        print(f"the honest sender failed: {done.stderr.strip()}", file=sys.stderr)
        return float("inf")
    return float(json.loads(done.stdout)["rows"][0]["time_s"])


def record(folder: Path, receiver: Address, size: int) -> tuple[list[bytes], bytes]:
    """Datagrams of a transfer to the receiver, and the hash of the file that it has now."""
    path = _file(folder / "known", size)
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
    return files.send([path], to, stack="rack/bbr", rate="100mbit", max_wait="20s")


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
