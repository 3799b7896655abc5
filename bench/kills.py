"""The command `python -m bench.kills`: transfers whose programs are killed at random.

Files travel through a relay that loses, damages, duplicates and reorders. Sender, receiver and
relay are killed (SIGKILL) at random times and started again with the same command. The command
checks that every transfer ends within a minute of its last kill, that what arrives is what was
sent, and that at most 4 MiB of acknowledged data are sent again.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from bench import command

ENDS_WITHIN_S = 60.0
AGAIN_AT_MOST = 4 << 20
_VICTIMS = ("sender", "receiver", "relay")
_FAULTS = (
    *("--loss", "3%", "--corrupt", "1%", "--duplicate", "1%", "--reorder", "1%"),
    *("--delay", "2ms", "--jitter", "1ms"),
)
_AWAY_S = 0.5
"""Who was killed is started again after at most so long."""
_FIRST_ANSWER_S = 10.0
"""A sender waits so long for its first answer (docs/transfer.md)."""
_START_S = 1.5
"""What a sender takes before its first segment."""


@dataclass(frozen=True, slots=True)
class Chaos:
    """How much of it there is."""

    transfers: int = 300
    kills: int = 300
    seed: int = 1
    smallest: int = 100_000
    largest: int = 30_000_000
    rate: str = "60mbit"
    workers: int = 2
    sealed: bool = False


@dataclass(slots=True)
class Fate:
    """What became of a transfer."""

    bytes: int
    killed: list[str] = field(default_factory=list)
    unanswered: int = 0
    """Senders that got no answer while the relay or receiver was down, and were started again."""
    after_last_kill_s: float = 0.0
    lost_bytes: int = 0
    """The most that was acknowledged at a sender and sent again later."""
    problem: str | None = None


class Program:
    """A command that is killed and started again."""

    def __init__(self, *args: object) -> None:
        self._reader: threading.Thread | None = None
        """Of what it says once it listens."""
        self._command = [sys.executable, "-m", "weir", *map(str, args)]
        self.process = self._start()

    def wait_until_it_listens(self) -> None:
        """Reads its first line, which says so."""
        line = self.process.stderr.readline() if self.process.stderr else ""
        if not re.match(r"listening on |relay: ", line):
            raise RuntimeError(f"{' '.join(self._command)} does not listen: {line}")
        self._reader = threading.Thread(target=self.process.communicate, daemon=True)
        self._reader.start()

    def kill(self) -> None:
        """Kills it and waits until it is gone."""
        self.process.kill()
        if self._reader is None:
            self.process.communicate()
        else:
            self._reader.join()

    def again(self) -> None:
        """Starts it again, after it was killed."""
        self.process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(self._command, stdout=pipe, stderr=pipe, text=True)


class Site:
    """A receiver and a relay in front of it, which live on from transfer to transfer."""

    def __init__(self, folder: Path, chaos: Chaos, seed: int) -> None:
        self.folder, self.inbox = folder, folder / "in"
        folder.mkdir()
        self.key: tuple[object, ...] = ()
        if chaos.sealed:
            (folder / "key").write_text(os.urandom(32).hex())
            (folder / "key").chmod(0o600)
            self.key = ("--key-file", folder / "key")
        receiver = free_port()
        self.address = free_port()
        bind = ("--bind", receiver)
        self.programs = {
            "receiver": Program("recv", "--dir", self.inbox, *bind, *self.key),
            "relay": Program(
                "relay", "--to", receiver, "--listen", self.address, "--seed", seed, *_FAULTS
            ),
        }
        for program in self.programs.values():
            program.wait_until_it_listens()

    def close(self) -> None:
        """Ends both."""
        for program in self.programs.values():
            program.kill()


def free_port() -> str:
    """A free loopback address; a killed process returns to it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return "{}:{}".format(*one.getsockname())


def run(chaos: Chaos) -> list[Fate]:
    """All transfers, each worker's one after the other."""
    rng = random.Random(chaos.seed)  # noqa: S311
    kills = [0] * chaos.transfers
    for _ in range(chaos.kills):
        kills[rng.randrange(chaos.transfers)] += 1
    seeds = [rng.randrange(1 << 32) for _ in kills]
    with (
        tempfile.TemporaryDirectory(prefix="weir-kills-") as name,
        ThreadPoolExecutor(chaos.workers) as pool,
    ):

        def work(worker: int) -> list[Fate]:
            site = Site(Path(name) / str(worker), chaos, chaos.seed + worker)
            fates, due = [], 0
            try:
                for n in range(worker, chaos.transfers, chaos.workers):
                    # A transfer may end before all its kills have happened.
                    due += kills[n]
                    fates.append(transfer(site, chaos, n, seeds[n], due))
                    due -= len(fates[-1].killed)
                return fates
            finally:
                site.close()

        return [fate for fates in pool.map(work, range(chaos.workers)) for fate in fates]


class _Transfer:
    """One file on its way."""

    def __init__(self, site: Site, chaos: Chaos, number: int, rng: random.Random) -> None:
        size = int(chaos.smallest * (chaos.largest / chaos.smallest) ** rng.random())
        self.path = site.folder / f"file-{number}"
        self.path.write_bytes(rng.randbytes(size))
        self.fate, self.traces = Fate(size), list[Path]()
        self.last_kill = time.monotonic()
        self._site, self._rate, self._rng = site, chaos.rate, rng
        self.start()

    def start(self) -> None:
        """Starts the sender, anew if it was there before."""
        self._said = ""
        self.traces.append(self.path.with_name(f"{self.path.name}-{len(self.traces)}.csv"))
        how = ("--json", "--quiet", "--rate", self._rate, "--trace", self.traces[-1])
        to = self._site.address
        self._site.programs["sender"] = Program("send", self.path, to, *how, *self._site.key)

    def ends(self, within_s: float) -> bool:
        """Waits for the sender."""
        try:
            self._site.programs["sender"].process.wait(max(0.0, within_s))
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """Kills a process, which restarts a little later."""
        victim = self._rng.choice(_VICTIMS)
        self.fate.killed.append(victim)
        self._site.programs[victim].kill()
        time.sleep(self._rng.uniform(0, _AWAY_S))
        if victim == "sender":
            self.start()
        else:
            self._site.programs[victim].again()
            self._site.programs[victim].wait_until_it_listens()
        self.last_kill = time.monotonic()

    def finish(self) -> None:
        """Judges what the sender says and what is there."""
        process, fate = self._site.programs["sender"].process, self.fate
        fate.after_last_kill_s = time.monotonic() - self.last_kill
        if process.returncode:
            said = self._said or process.communicate()[1]
            fate.problem = f"exit {process.returncode}: {' '.join(said.split())}"
        else:
            out, _ = process.communicate()
            fate.problem = _judge(self._site, self.path, json.loads(out)["rows"][0])
        fate.lost_bytes = lost(list(_acknowledged(self.traces)))
        for used in (self.path, *self.traces):
            used.unlink(missing_ok=True)

    def unanswered(self) -> bool:
        """Whether the sender got no answer, less than 10 s after all programs run again."""
        process = self._site.programs["sender"].process
        if not process.returncode or time.monotonic() - self.last_kill > _FIRST_ANSWER_S:
            return False
        _, self._said = process.communicate()
        return re.search("no (program listens|answer)", self._said) is not None


def transfer(site: Site, chaos: Chaos, number: int, seed: int, kills: int) -> Fate:
    """Transfers one file during this number of kills."""
    one = _Transfer(site, chaos, number, random.Random(seed))  # noqa: S311
    rng = random.Random(seed + 1)  # noqa: S311
    began = time.monotonic()
    usual_s = _START_S + 8 * one.fate.bytes / _bits_per_second(chaos.rate)
    for due in sorted(began + rng.uniform(0, usual_s) for _ in range(kills)):
        while one.ends(due - time.monotonic()) and one.unanswered():
            one.fate.unanswered += 1
            one.start()
        if one.ends(0):
            break
        one.kill()
    while (ended := one.ends(ENDS_WITHIN_S)) and one.unanswered():
        one.fate.unanswered += 1
        one.start()
    if not ended:
        site.programs["sender"].kill()
    one.finish()
    if not ended:
        one.fate.problem = f"not ended {ENDS_WITHIN_S:g} s after the last kill"
    return one.fate


def _judge(site: Site, path: Path, row: dict[str, object]) -> str | None:
    """What is wrong with what arrived, which is removed."""
    there = [one for one in site.inbox.iterdir() if not one.name.startswith(".")]
    digests = [hashlib.blake2b(one.read_bytes()).digest() for one in (path, *there)]
    for one in there:
        one.unlink()
    if row["verdict"] not in {"kept", "already"}:
        return f"its verdict is {row['verdict']}"
    if len(there) != 1:
        return f"{len(there)} files are there"
    return None if digests[0] == digests[1] else "WRONG: another content is there"


def _acknowledged(traces: Sequence[Path]) -> Iterator[int]:
    """What the senders knew to be there, one after the other, ten times a second."""
    for trace in traces:
        if not trace.exists():
            continue
        with trace.open(newline="") as lines:
            # A killed sender's last line may be cut off.
            rows = [row.get("bytes_done") for row in csv.DictReader(lines)]
        known = [int(cell) for cell in rows[:-1] if cell]
        # Nothing is known before the receiver's first answer.
        yield from (there for there in known if there)


def lost(acknowledged: Sequence[int]) -> int:
    """By how much what is acknowledged falls back at most."""
    highest = most = 0
    for there in acknowledged:
        most = max(most, highest - there)
        highest = max(highest, there)
    return most


def faults(fates: Sequence[Fate]) -> list[str]:
    """What does not hold, transfer by transfer."""
    found = []
    for number, fate in enumerate(fates):
        what = f"transfer {number} ({fate.bytes} bytes; killed: {', '.join(fate.killed) or 'none'})"
        if fate.problem:
            found.append(f"{what}: {fate.problem}")
        if fate.lost_bytes > AGAIN_AT_MOST:
            found.append(f"{what}: {fate.lost_bytes} acknowledged bytes were sent again")
    return found


def _bits_per_second(rate: str) -> float:
    return float(rate.removesuffix("mbit")) * 1e6


def kills(
    transfers: Annotated[int, typer.Option(min=1, help="How many.")] = 300,
    kills_: Annotated[int, typer.Option("--kills", min=0, help="In all of them.")] = 300,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 1,
    key: Annotated[bool, typer.Option("--key", help="Seal everything.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Transfers files while sender, receiver and relay are killed at random."""
    fates = run(Chaos(transfers=transfers, kills=kills_, seed=seed, sealed=key))
    found = faults(fates)
    if json_:
        print(json.dumps({"transfers": [asdict(fate) for fate in fates], "faults": found}))
    else:
        happened = [victim for fate in fates for victim in fate.killed]
        counts = ", ".join(f"{happened.count(victim)} {victim}s" for victim in _VICTIMS)
        slowest = max(fate.after_last_kill_s for fate in fates)
        again = max(fate.lost_bytes for fate in fates)
        print(f"{len(fates)} transfers, {len(happened)} kills ({counts})")
        print(f"{sum(fate.unanswered for fate in fates)} senders got no answer")
        print(f"the last ended {slowest:.1f} s after its last kill")
        print(f"of what was acknowledged at most {again} bytes were sent again")
        print("\n".join(found) or "holds")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    command.run(kills, "bench.kills")
