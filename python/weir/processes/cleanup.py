"""Host settings that `weir link` changes, and how they are restored, also after it was killed.

Namespace, devices, addresses and routes disappear with the process. Two settings do not: an
nftables table, through which programs behind the link reach other hosts, and `net.ipv4.ip_forward`.
A record in ``/run/weir`` is written before either is changed and removed when both are restored.
`clean` does this for processes that have ended.
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

from weir.base.errors import WeirError

_FOLDER = Path("/run/weir")
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
_TABLE = re.compile(r"table ip (weir-(\d+))")
_FIELDS_BEFORE_START = 18
"""Fields between a process's state and its start time in ``/proc/PID/stat`` (proc(5))."""


class OutsideError(WeirError):
    """Forwarding to other hosts cannot be set up."""


@dataclass(frozen=True, slots=True)
class Record:
    """Record of a link whose programs reach other hosts."""

    pid: int
    started: int
    """Start time of the process in ticks since boot, because process numbers are reused."""
    network: int
    """Inode of the network namespace that was changed."""
    forwarding: str
    """Value of ``ip_forward`` before the first of the present links."""

    @property
    def file(self) -> Path:
        """File of the record."""
        return _FOLDER / f"{self.pid}.json"

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return _started(self.pid) == self.started

    def undo(self) -> list[str]:
        """Restores the settings that no other link needs, and returns what was done."""
        done = []
        if self.network == _own_network():
            table = f"weir-{self.pid}"
            if _nft(f"delete table ip {table}\n") is None:
                done.append(f"nftables: table {table} removed")
            others = [r for r in _records() if r != self and r.network == self.network]
            if not others and _FORWARDING.read_text().strip() != self.forwarding:
                _FORWARDING.write_text(self.forwarding)
                done.append(f"net.ipv4.ip_forward set back to {self.forwarding}")
        # The settings of another namespace disappeared with it.
        self.file.unlink(missing_ok=True)
        return done or [f"{self.file} removed"]


@contextmanager
def masqueraded(addresses: str, device: str) -> Iterator[None]:
    """Lets `addresses` behind `device` reach the networks of this host, by masquerading.

    Raises:
        OutsideError: that is not possible here; the message says why.
    """
    if shutil.which("nft") is None:
        raise OutsideError("program nft not found (Debian, Ubuntu: nftables)")
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
            raise OutsideError(f"nftables: {problem}")
    try:
        yield
    finally:
        with locked():
            record.undo()


@contextmanager
def locked() -> Iterator[None]:
    """Serialises links: they choose addresses, and the last one restores the settings."""
    _FOLDER.mkdir(mode=0o755, exist_ok=True)
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def found() -> list[str]:
    """Returns the settings that killed processes did not restore."""
    stale = [f"{record.file}, of a killed link" for record in _stale_records()]
    return stale + [f"nftables: table {table}" for table in _stray_tables()]


def clean() -> list[str]:
    """Restores what `found` returns, and returns what was done."""
    if not found():
        return []
    with locked():
        done = [text for record in _stale_records() for text in record.undo()]
        for table in _stray_tables():
            if _nft(f"delete table ip {table}\n") is None:
                done.append(f"nftables: table {table} removed")
    return done


def _begin() -> Record:
    """Records the value of ``ip_forward``, then turns forwarding on."""
    network = _own_network()
    for record in _stale_records():
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
        # A record that is being written or removed right now belongs to a running process.
        with suppress(OSError, ValueError, TypeError):
            records.append(Record(**json.loads(file.read_text())))
    return records


def _stale_records() -> list[Record]:
    return [record for record in _records() if not record.is_alive]


def _stray_tables() -> list[str]:
    """Returns tables with our name that have neither a record nor a process."""
    if shutil.which("nft") is None:
        return []
    command = ["nft", "list", "tables"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    recorded = {record.pid for record in _records()}
    tables = [(match[1], int(match[2])) for match in _TABLE.finditer(listed.stdout)]
    return [name for name, pid in tables if pid not in recorded and _started(pid) is None]


def _nft(script: str) -> str | None:
    """Runs an nftables script and returns the error, if any."""
    command = ["nft", "--file", "-"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return next(iter(done.stderr.splitlines()), "unknown error")


def _own_network() -> int:
    return Path("/proc/self/ns/net").stat().st_ino


def _started(pid: int) -> int | None:
    """Returns the start time of a process; None if there is none with that number."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The program's name, which may hold anything, ends at the last parenthesis.
    state, *rest = stat.rpartition(")")[2].split()
    return None if state == "Z" else int(rest[_FIELDS_BEFORE_START])
