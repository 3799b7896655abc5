"""Where transfers happen: files in memory, processes at both ends, links between namespaces."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from weir.base.disk import sha256
from weir.transfer.ends import Ends, Hosts, Programs, hosts, own_programs
from weir.transfer.model import Network, Outcome, Transfer
from weir.transfer.process import End, EndError, EndTimeoutError

_MEMORY = Path("/dev/shm")  # noqa: S108  # what is in there is private to this process
_LEAST_FREE_BYTES = 1 << 30
_CHUNK = 1 << 20
_KEY_BYTES = 32
_START_S = 30.0
_START_DELAY_S = 0.05
"""Time before the sender starts, so that the receiver blocks, as in normal use."""
_CLOSE_S = 15.0
"""Most time of the close beyond the transfer itself, which no result includes."""
_PUBLISH_S = 1.0
"""Time beyond the limit in which a file appears under its own name; without, it is out of time."""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    digest: str


class Site(AbstractContextManager["Site"]):
    """Carries transfers, one at a time, each between two processes of its own, as a user's is."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._files: dict[int, _File] = {}
        self._hosts: dict[Network, Hosts] = {}
        parent = memory()
        self.is_in_memory = parent is not None
        made = TemporaryDirectory(prefix=f"weir-transfers-{os.getpid()}-", dir=parent)
        self._directory = Path(self._stack.enter_context(made))
        self._key = self._directory / "key"
        self._key.write_text(secrets.token_hex(_KEY_BYTES), encoding="ascii")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def place(self) -> str:
        """Where the files are, for people."""
        return "a memory file system" if self.is_in_memory else "the temporary directory"

    def run(
        self,
        transfer: Transfer,
        network: Network,
        limit_s: float,
        programs: Programs | None = None,
        seed: int | None = None,
    ) -> Outcome:
        """Carries one file and says what became of it; `programs` replace our own.

        With a seed the link is a new one, so that transfers with the same lose the packets of the
        same numbers. Without, all transfers share a link, whose random stream continues.

        Raises:
            WeirError: the network cannot be made here.
        """
        source = self._source(transfer.size_bytes)
        folder = self._directory / "in"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with (
            self._hosts_of(network, seed) as there,
            there.start(programs or own_programs()) as ends,
        ):
            try:
                return self._transfer(transfer, source, folder, ends, limit_s)
            except EndError as error:
                left = _received(folder)
                size = left.stat().st_size if left else 0
                return Outcome(None, is_intact=False, received_bytes=size, failure=str(error))

    def _transfer(
        self, transfer: Transfer, source: _File, folder: Path, ends: Ends, limit_s: float
    ) -> Outcome:
        common = {"protocol": transfer.protocol, "stack": transfer.stack}
        if transfer.with_key:
            common["key_file"] = str(self._key)
        listening = {**common, "listen": ends.address, "directory": str(folder)}
        ends.receiver.send({"do": "receive", **listening})
        try:
            ready = ends.receiver.receive(time.monotonic() + _START_S)
        except EndTimeoutError:
            raise EndError(f"the receiver did not listen within {_START_S:g} s") from None
        time.sleep(_START_DELAY_S)
        deadline = time.monotonic() + limit_s + _PUBLISH_S
        sending = {**common, "to": ready["address"], "path": str(source.path)}
        ends.sender.send({"do": "send", **sending, **transfer.options})

        def receive(end: End) -> dict[str, Any]:
            try:
                return end.receive(deadline)
            except EndTimeoutError:
                if not _is_published(folder, transfer.size_bytes):
                    raise
                return end.receive(deadline + _CLOSE_S)

        sent, got = receive(ends.sender), receive(ends.receiver)
        arrived = _received(folder)
        size = arrived.stat().st_size if arrived else 0
        is_intact = arrived is not None and sha256(arrived) == source.digest
        seconds = (got["ended_ns"] - sent["began_ns"]) / 1e9
        if seconds > limit_s:
            raise EndTimeoutError
        return Outcome(
            seconds,
            is_intact,
            got.get("received_bytes", size),
            sent["cpu_s"],
            got["cpu_s"],
            None if is_intact else "incomplete",
            sent.get("resent"),
        )

    def _source(self, size: int) -> _File:
        if size not in self._files:
            path = self._directory / f"file-{size}"
            with path.open("wb") as file:
                for begin in range(0, size, _CHUNK):
                    file.write(os.urandom(min(_CHUNK, size - begin)))
            self._files[size] = _File(path, sha256(path))
        return self._files[size]

    def _hosts_of(self, network: Network, seed: int | None) -> AbstractContextManager[Hosts]:
        if seed is not None:
            return hosts(network, seed)
        if network not in self._hosts:
            self._hosts[network] = self._stack.enter_context(hosts(network))
        return nullcontext(self._hosts[network])


def memory() -> Path | None:
    """A memory file system with space for files, if there is one."""
    if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK):
        return _MEMORY if shutil.disk_usage(_MEMORY).free > _LEAST_FREE_BYTES else None
    return None


def _received(folder: Path) -> Path | None:
    """What the receiver has made of the file, under whichever name."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return max(found, key=lambda path: path.stat().st_size, default=None)


def _is_published(folder: Path, size: int) -> bool:
    """Whether all bytes are there, under a name that is not hidden: the rest is the close."""
    files = (path for path in folder.rglob("[!.]*") if path.is_file())
    return any(path.stat().st_size == size for path in files)
