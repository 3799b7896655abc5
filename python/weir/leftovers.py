"""What `weir link` changes outside of itself, and how that is undone, also after it was killed.

Its namespace, devices, addresses and routes vanish with the process, whatever ends it. Two things
do not: a table of nftables, which lets programs behind the link reach beyond this host, and the
switch that lets this host forward. A record in ``/run/weir`` is written before either is touched
and removed when both are as before; `clean` does the same for processes that are gone.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from weir.errors import WeirError

_FOLDER = Path("/run/weir")
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
_TABLE = re.compile(r"table ip (weir-(\d+))")
_FIELDS_BEFORE_START = 18
"""Between the state of a process and its start in ``/proc/PID/stat`` (proc(5))."""


class OutsideError(WeirError):
    """The way out of this host cannot be opened."""


@dataclass(frozen=True, slots=True)
class Record:
    """A link that lets programs behind it reach beyond its host."""

    pid: int
    started: int
    """When the process began, in ticks since the system did: numbers of processes come again."""
    network: int
    """Which network namespace was changed: the inode that stands for it."""
    forwarding: str
    """The switch before the first of the links that are there."""

    @property
    def file(self) -> Path:
        """Where the record is kept."""
        return _FOLDER / f"{self.pid}.json"

    @property
    def is_alive(self) -> bool:
        """Whether the process is still there."""
        return _started(self.pid) == self.started

    def undo(self) -> list[str]:
        """Makes everything as it was, as far as no other link needs it, and says what was done."""
        done = []
        if self.network == _own_network():
            table = f"weir-{self.pid}"
            if _nft(f"delete table ip {table}\n") is None:
                done.append(f"nftables: table {table} removed")
            others = [r for r in _records() if r != self and r.network == self.network]
            if not others and _FORWARDING.read_text().strip() != self.forwarding:
                _FORWARDING.write_text(self.forwarding)
                done.append(f"net.ipv4.ip_forward set back to {self.forwarding}")
        # In another namespace all of it vanished together.
        self.file.unlink(missing_ok=True)
        return done or [f"{self.file} removed"]


@contextmanager
def masqueraded(addresses: str, device: str) -> Iterator[None]:
    """Lets those who have `addresses`, behind `device`, reach what this host reaches.

    Raises:
        OutsideError: that is not possible here; the message says why.
    """
    if shutil.which("nft") is None:
        raise OutsideError("there is no program nft (Debian, Ubuntu: nftables)")
    with locked():
        record = _begin()
        problem = _nft(
            f"""
            table ip weir-{record.pid} {{
                chain way_out {{
                    type nat hook postrouting priority srcnat;
                    ip saddr {addresses} oifname != "{device}" masquerade
                }}
            }}
            """
        )
        if problem is not None:
            record.undo()
            raise OutsideError(f"nftables refuses: {problem}")
    try:
        yield
    finally:
        with locked():
            record.undo()


@contextmanager
def locked() -> Iterator[None]:
    """One at a time: links choose addresses, and the last one restores what the first found."""
    _FOLDER.mkdir(mode=0o755, exist_ok=True)
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def found() -> list[str]:
    """What processes have left behind that were killed before they could undo it."""
    stale = [f"{record.file}, of a link that was killed" for record in _records_of_the_dead()]
    return stale + [f"nftables: table {table}" for table in _stray_tables()]


def clean() -> list[str]:
    """Undoes what `found` found, and says what that was."""
    if not found():
        return []
    with locked():
        done = [text for record in _records_of_the_dead() for text in record.undo()]
        for table in _stray_tables():
            if _nft(f"delete table ip {table}\n") is None:
                done.append(f"nftables: table {table} removed")
    return done


def _begin() -> Record:
    """Turns forwarding on and notes how it was, before anything is changed."""
    network = _own_network()
    for record in _records_of_the_dead():
        record.undo()
    known = [record.forwarding for record in _records() if record.network == network]
    before = known[0] if known else _FORWARDING.read_text().strip()
    record = Record(os.getpid(), _started(os.getpid()) or 0, network, before)
    record.file.write_text(json.dumps(asdict(record)))
    _FORWARDING.write_text("1")
    return record


def _records() -> list[Record]:
    records = []
    for file in sorted(_FOLDER.glob("*.json")):
        # One that is being written or removed at this moment belongs to a living process.
        with suppress(OSError, ValueError, TypeError):
            records.append(Record(**json.loads(file.read_text())))
    return records


def _records_of_the_dead() -> list[Record]:
    return [record for record in _records() if not record.is_alive]


def _stray_tables() -> list[str]:
    """Tables with our name for which there is neither a record nor a process."""
    if shutil.which("nft") is None:
        return []
    command = ["nft", "list", "tables"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    recorded = {record.pid for record in _records()}
    tables = [(match[1], int(match[2])) for match in _TABLE.finditer(listed.stdout)]
    return [name for name, pid in tables if pid not in recorded and _started(pid) is None]


def _nft(script: str) -> str | None:
    """Carries out a script of nftables, and returns what is wrong with it, if anything is."""
    command = ["nft", "--file", "-"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return next(iter(done.stderr.splitlines()), "it gives no reason")


def _own_network() -> int:
    return Path("/proc/self/ns/net").stat().st_ino


def _started(pid: int) -> int | None:
    """When a process began; None if there is none of that number."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The program's name, which may hold anything, ends at the last parenthesis.
    state, *rest = stat.rpartition(")")[2].split()
    return None if state == "Z" else int(rest[_FIELDS_BEFORE_START])
