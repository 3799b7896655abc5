"""Runs on a Dask cluster: who may work, and when to stop waiting for workers.

What a worker must agree with is checked before the first run, and again with every batch, since
workers come and go: the versions, and a probe. The probe is a short simulation whose trace must be
the one that this machine gets, so that results are the same bytes wherever a run happens to be
run. Dask gives the work of a lost worker to another one.
"""

from __future__ import annotations

import json
import logging
import re
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from weir import _native
from weir.base.errors import ClusterError, InputError
from weir.base.extras import imported
from weir.running.batches import Batches
from weir.running.runner import execute
from weir.scenario.source import Source

if TYPE_CHECKING:
    from distributed import Client

PATIENCE_S = 30.0
"""How long a cluster may be without workers: a nanny or a pod starts a lost one again."""

_CONNECT_S = 10.0
_ANSWER_S = 1.5
_LENGTH = struct.Struct("<Q")
_LONGEST_GREETING = 1 << 20
_LOOK_S = 1.0
_CLOSE_S = 5.0
_SHARED = ("polars", "distributed")
"""Libraries whose objects travel as they are."""

_PROBE = """
name = "probe"
[topology]
rate = "10mbit"
rtt = "20ms"
forward = { loss = "1%" }
[[flow]]
stack = "cubic"
[[flow]]
stack = "bbr"
[measure]
duration = "2s"
"""


@cache
def identity() -> dict[str, str]:
    """What client and workers must have in common."""
    summary = execute(Source(_PROBE, "probe").effective(), 1)["summary"]
    libraries = {name: version(name) for name in _SHARED}
    return {"weir": _native.version(), **libraries, "probe": str(summary["trace_hash"][0])}


@dataclass(frozen=True, slots=True)
class WorkerCheck:
    """Refuses a worker that differs from this machine."""

    wanted: Mapping[str, str]

    def __call__(self) -> None:
        """Raises ClusterError on a worker that differs."""
        if (difference := _difference(identity(), self.wanted)) is not None:
            raise ClusterError(f"a worker {difference}")


@contextmanager
def connected(where: str, *, patience_s: float = PATIENCE_S) -> Iterator[Batches]:
    """Yields an executor that runs on the cluster at an address or of a scheduler file.

    Raises:
        InputError: there is no such cluster, it has no workers, or they differ from this machine.
    """
    imported("distributed", "dask", f"--dask {where}")
    with _quietly(), _client(where) as client:
        threads = _first_workers(client, where, patience_s)
        _refuse_others(client, where)
        batches = Batches(
            client.get_executor(pure=False), threads, check=WorkerCheck(identity()), killed=_killed
        )
        over = Event()
        watch = Thread(target=_watch, args=(client, batches, patience_s, over), daemon=True)
        watch.start()
        try:
            yield batches
        finally:
            over.set()
            batches.shutdown()
            watch.join(_CLOSE_S)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keeps Dask's log off stderr: errors are reported in one line."""
    import distributed  # noqa: F401 – it sets its log up when it is imported

    handlers = logging.getLogger("distributed").handlers
    levels = [handler.level for handler in handlers]
    for handler in handlers:
        handler.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for handler, level in zip(handlers, levels, strict=True):
            handler.setLevel(level)


@contextmanager
def _client(where: str) -> Iterator[Client]:
    from distributed import Client

    is_file = where.endswith(".json") or Path(where).is_file()
    if is_file and not Path(where).is_file():
        raise InputError(f"--dask {where}: no such scheduler file")
    _refuse_other_programs(where, _address(where) if is_file else where)
    target = {"scheduler_file": where} if is_file else {"address": where}
    try:
        client = Client(**target, timeout=_CONNECT_S, set_as_default=False, name="weir")
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = str(error) or type(error).__name__
        raise InputError(f"--dask {where}: no scheduler answers there ({reason})") from None
    try:
        yield client
    finally:
        client.close(timeout=_CLOSE_S)


def _address(file: str) -> str:
    """The address in a scheduler file; nothing if it has none, which Dask then says better."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads(Path(file).read_text(encoding="utf-8"))["address"])
    return ""


def _refuse_other_programs(where: str, address: str) -> None:
    """Refuses an address where no scheduler speaks.

    Dask would try again for longer than users wait where nothing listens, and would reserve as much
    memory as the first bytes of another program say. A scheduler speaks first: it sends how long
    its greeting is, eight bytes of low order first. One behind TLS or HTTP is left to Dask.
    """
    if (named := re.fullmatch(r"(?:(\w+)://)?\[?([^/]+?)\]?:(\d{1,5})", address)) is None:
        return
    try:
        with socket.create_connection((named[2], int(named[3])), timeout=_ANSWER_S) as stream:
            size = _LENGTH.size if named[1] in (None, "tcp") else 0
            start = stream.recv(size, socket.MSG_WAITALL)
    except (OSError, OverflowError) as error:
        raise InputError(f"--dask {where}: no scheduler answers there ({error})") from None
    if size and (len(start) < size or _LENGTH.unpack(start)[0] > _LONGEST_GREETING):
        raise InputError(f"--dask {where}: another program answers there, no Dask scheduler")


def _first_workers(client: Client, where: str, patience_s: float) -> int:
    """The number of threads of all workers, as soon as there are any."""
    end = time.monotonic() + patience_s
    while (threads := _threads(client)) == 0:
        if time.monotonic() > end:
            raise InputError(f"--dask {where}: no worker has come within {patience_s:g} s")
        time.sleep(min(_LOOK_S, patience_s))
    return threads


def _refuse_others(client: Client, where: str) -> None:
    answers = client.run(identity, on_error="return")
    for address, answer in sorted(answers.items()):
        difference = _difference(answer, identity())
        if difference is not None:
            raise InputError(f"--dask {where}: worker {address} {difference}")


def _difference(answer: Mapping[str, str] | BaseException, wanted: Mapping[str, str]) -> str | None:
    """Returns how a worker with this answer differs from this machine."""
    if isinstance(answer, BaseException):
        return f"cannot load Weir {wanted['weir']}: {type(answer).__name__}: {answer}"
    for name, own in wanted.items():
        other = answer.get(name)
        if other != own and name == "probe":
            return "simulates otherwise than this machine, though its version is the same"
        if other != own:
            return f"has {name} {other}, this machine {own}; install the same"
    return None


def _watch(client: Client, batches: Batches, patience_s: float, over: Event) -> None:
    """Keeps the number of slots up to date, and gives up when there have been none for long."""
    seen = time.monotonic()
    while not over.wait(_LOOK_S):
        threads = 0
        with suppress(Exception):  # a scheduler that does not answer has no workers for us
            threads = _threads(client)
        if threads:
            seen, batches.slots = time.monotonic(), threads
        elif time.monotonic() - seen > patience_s:
            batches.abandon(ClusterError(f"it has had no workers for {patience_s:g} s"))
            return


def _threads(client: Client) -> int:
    info: dict[str, Any] = client.scheduler_info(n_workers=0)
    return int(info["total_threads"])


def _killed(error: BaseException) -> bool:
    from distributed import KilledWorker

    return isinstance(error, KilledWorker)
