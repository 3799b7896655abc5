"""One end of transfers: reads jobs from stdin, a line of JSON each, and answers in lines.

Run by its path, and on its own: it knows the native module and nothing else of the package, so
that a fresh process does not load the libraries of statistics and plots first.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import socket
import sys
import time
from collections.abc import Callable, Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

Job = Mapping[str, Any]

_INITIAL_WINDOW = 10
_PATIENCE, _MAX_WAIT_S = 1000, 30.0
"""Timeouts in a row, and time without progress, after which `weir send` too gives up."""

_GREETING, _ANSWER, _HEADER, _COUNT = 18, 9, 21, 8
"""Bytes of a dialogue: what a client says first, what a server says, what is in front of each
packet, and the size that ends greeting and header."""


def main() -> None:
    """Executes requests until stdin ends, even in the middle of one; an error is an answer too."""
    jobs: SimpleQueue[Job] = SimpleQueue()
    Thread(target=_read_jobs, args=(jobs,), daemon=True).start()
    while True:
        job = jobs.get()
        try:
            _DO[job["do"], job["protocol"]](job)
        except Exception as error:  # any error is reported to the parent
            _reply(error=str(error) or type(error).__name__)


def _read_jobs(jobs: SimpleQueue[Job]) -> None:
    for line in sys.stdin:
        jobs.put(json.loads(line))
    os._exit(0)  # the parent is gone, and a transfer may last for a quarter of an hour


def _receive_tcp(job: Job) -> None:
    receiver = _native.TcpReceiver(job["listen"], controller=job["stack"])
    _reply(address=receiver.address)
    began = _cpu_s()
    moved = receiver.receive(os.path.join(job["directory"], "file"))  # noqa: PTH118
    _reply(ended_ns=moved.ended_ns, received_bytes=moved.bytes, cpu_s=_cpu_s() - began)


def _send_tcp(job: Job) -> None:
    began = _cpu_s()
    moved = _native.tcp_send(
        job["path"], job["to"], controller=job["stack"], write_size=job.get("write_size")
    )
    _reply(began_ns=moved.began_ns, cpu_s=_cpu_s() - began)


def _receive_dialogue(job: Job) -> None:
    """The kernel's TCP by a program that greets, frames packets and confirms.

    The server reads packet by packet.
    """
    host, _, port = job["listen"].rpartition(":")
    with socket.create_server((host, int(port))) as server:
        _set_controller(server, job)
        _reply(address=f"{host}:{server.getsockname()[1]}")
        began = _cpu_s()
        connection, _ = server.accept()
        with connection, open(os.path.join(job["directory"], "file"), "wb") as file:  # noqa: PTH118, PTH123
            left = received = int.from_bytes(_read(connection, _GREETING)[-_COUNT:])
            connection.sendall(bytes(_ANSWER))
            while left:
                packet = _read(connection, int.from_bytes(_read(connection, _HEADER)[-_COUNT:]))
                left -= file.write(packet)
            file.flush()
            ended_ns = time.monotonic_ns()
            connection.sendall(bytes(_ANSWER))
    _reply(ended_ns=ended_ns, received_bytes=received, cpu_s=_cpu_s() - began)


def _send_dialogue(job: Job) -> None:
    """The other end. Nagle's rule holds, as in a program that says nothing about it."""
    began, size = _cpu_s(), os.stat(job["path"]).st_size  # noqa: PTH116
    host, _, port = job["to"].rpartition(":")
    with socket.socket() as connection, open(job["path"], "rb") as file:  # noqa: PTH123
        _set_controller(connection, job)
        began_ns = time.monotonic_ns()
        connection.connect((host, int(port)))
        connection.sendall(size.to_bytes(_GREETING))
        _read(connection, _ANSWER)
        while packet := file.read(job["write_size"]):
            connection.sendall(len(packet).to_bytes(_HEADER) + packet)
        _read(connection, _ANSWER)
    _reply(began_ns=began_ns, cpu_s=_cpu_s() - began)


def _set_controller(connection: socket.socket, job: Job) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, job["stack"].encode())


def _read(connection: socket.socket, size: int) -> bytes:
    """Exactly that many bytes."""
    parts, left = [], size
    while left:
        part = connection.recv(left)
        if not part:
            raise ConnectionError("the other end closed the connection early")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _receive_weir(job: Job) -> None:
    sessions: list[Mapping[str, Any]] = []
    began = _cpu_s()

    def on_event(kind: str, facts: Mapping[str, Any]) -> None:
        nonlocal began
        if kind == "listening":
            began = _cpu_s()
            _reply(address=facts["address"])
        elif kind == "ended":
            sessions.append(facts)

    _native.receive_files(
        job["directory"],
        job["listen"],
        max_size=None,
        max_files=1,
        folders=False,
        once=True,
        on_event=on_event,
        memory="64mib",
        quota=None,
        partial_expiry="168h",
        key_file=job.get("key_file"),
    )
    (row,) = (row for session in sessions for row in session["rows"])
    ended_ns = row["arrived_ns"]
    if ended_ns is None and row["time_s"] is not None:  # bare UDP: when its last datagram was there
        ended_ns = row["began_ns"] + round(row["time_s"] * 1e9)
    _reply(ended_ns=ended_ns, received_bytes=row["arrived_bytes"], cpu_s=_cpu_s() - began)


def _send_weir(job: Job) -> None:
    began = _cpu_s()
    _, facts = _native.send_files(
        [job["path"]],
        job["to"],
        stack=job["stack"],
        mss=f"{job['mss']}b",
        initial_window=job.get("initial_window", _INITIAL_WINDOW),
        rate=None,
        pacing=True,
        max_retransmits=job.get("max_retransmits", _PATIENCE),
        max_wait=f"{job.get('max_wait_s', _MAX_WAIT_S)}s",
        on_event=lambda *_: None,
        key_file=job.get("key_file"),
    )
    if facts["problem"]:
        raise RuntimeError(facts["problem"])
    resent = facts["retransmits"] / max(facts["segments"], 1)
    _reply(began_ns=facts["began_ns"], cpu_s=_cpu_s() - began, resent=resent)


def _reply(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def _cpu_s() -> float:
    """CPU time of all threads so far, the system's work for us included."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _load_native() -> Any:
    """The native module from its file, without the package around it."""
    package = Path(__file__).parents[1]
    found = (package / f"_native{suffix}" for suffix in EXTENSION_SUFFIXES)
    file = next(path for path in found if path.is_file())
    spec = importlib.util.spec_from_file_location("weir._native", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_native = _load_native()

_DO: dict[tuple[str, str], Callable[[Job], None]] = {
    ("receive", "tcp"): _receive_tcp,
    ("send", "tcp"): _send_tcp,
    ("receive", "tcp-dialogue"): _receive_dialogue,
    ("send", "tcp-dialogue"): _send_dialogue,
    ("receive", "weir"): _receive_weir,
    ("send", "weir"): _send_weir,
}

if __name__ == "__main__":
    main()
