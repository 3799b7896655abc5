"""One end of a transfer by SRT: `srt-file-transmit` (Debian, Ubuntu: srt-tools).

Speaks as `weir.transfer.worker` does: a job comes in as a line of JSON, answers go out. The
program reports neither when a transfer began nor when it ended. So the time includes the start
of the sender process, some milliseconds, and ends when the file was last written.
"""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROGRAM = "srt-file-transmit"

_PACKET = 1456
"""Payload bytes of a packet of 1500 bytes."""
_WINDOW = 32_000
"""Packets in flight, and in either buffer: more than any path here holds."""


def main() -> None:
    """Does the job that it reads."""
    job = json.loads(sys.stdin.readline())
    try:
        _receive(job) if job["do"] == "receive" else _send(job)
    except (OSError, RuntimeError) as error:
        _say(error=str(error))
    sys.stdin.read()


def _receive(job: Mapping[str, Any]) -> None:
    host = job["listen"].rpartition(":")[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
    directory = Path(job["directory"])
    # It takes the folder from this, and the file's name from the sender.
    target = (directory / "any").as_uri()
    process = _start(f"srt://{host}:{port}?mode=listener&{_OPTIONS}", target)
    _wait_for_listener(port, process)
    _say(address=f"{host}:{port}")
    _end(process)
    (file,) = directory.iterdir()
    ended_ns = file.stat().st_mtime_ns - (time.time_ns() - time.monotonic_ns())
    _say(ended_ns=ended_ns, cpu_s=_cpu_s())


def _send(job: Mapping[str, Any]) -> None:
    began_ns = time.monotonic_ns()
    _end(_start(Path(job["path"]).as_uri(), f"srt://{job['to']}?{_OPTIONS}"))
    _say(began_ns=began_ns, cpu_s=_cpu_s())


def _start(source: str, target: str) -> subprocess.Popen[bytes]:
    command = [PROGRAM, "-quiet", "-skipflush", f"-chunk:{_PACKET}", source, target]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def _wait_for_listener(port: int, process: subprocess.Popen[bytes]) -> None:
    """Returns when a socket is bound to `port`."""
    while process.poll() is None:
        bound = Path("/proc/net/udp").read_text(encoding="ascii")
        if f":{port:04X} " in bound:
            return
        time.sleep(0.005)
    _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    _, said = process.communicate()
    if process.returncode:
        lines = said.decode(errors="replace").strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"{PROGRAM} exited with {process.returncode}")


def _say(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


_OPTIONS = "&".join(
    (
        "transtype=file",
        "messageapi=0",
        f"fc={_WINDOW}",
        f"sndbuf={_WINDOW * _PACKET}",
        f"rcvbuf={_WINDOW * _PACKET}",
    )
)

if __name__ == "__main__":
    main()
