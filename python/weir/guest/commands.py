"""In a guest: a command behind an emulated link, and a server at the other end.

The first process of the guest carries the packets, in a thread of the compiled core. It starts the
commands, waits for them in virtual time, and writes their outputs to the folder of the job.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir import _native
from weir.guest.job import CAPTURE
from weir.kernel import system
from weir.kernel.root import Root
from weir.links.ends import HOST6, INSIDE6
from weir.processes.ready import GRACE_S, POLL_S, Ready

CLIENT, SERVER = "client", "server"
WRITTEN, PROGRESS = "written", "progress"
"""In the folder of the job: what was written in the working folder, and how far time has come."""
INSIDE, HOST = "100.64.0.2", "100.64.0.1"
NAMES = {
    **{"weir-command": INSIDE, "weir-host": HOST},
    **{"weir-command6": INSIDE6, "weir-host6": HOST6},
}
"""The ends of the link, for commands that need a name, as for a certificate. Those of IPv6 are
names of their own, so that no program chooses between the families."""

_MTU = 1500
_EVERY_S = 0.1
"""How often outputs and the progress are handed to the host."""
_LEFT_S = 1.0
"""What is left at the end may go on for so long after SIGTERM."""
_SOCKET_BUFFER = 8 << 20
"""QUIC stacks ask for 2 to 8 MB; the kernel grants 208 KB unless this limit is raised."""
_IPV6 = Path("/proc/sys/net/ipv6/conf")
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_CHILD = frozenset({signal.SIGCHLD})
_RESET = (signal.SIGPIPE, signal.SIGXFSZ)
"""What Python ignores, and a command must not."""


class NotStartedError(Exception):
    """A command cannot be started."""


@dataclass(slots=True)
class Command:
    """A command that runs, or has ended."""

    name: str
    pid: int
    files: list[int]
    """Its standard output and error, as the first process has them open."""
    code: int | None = None


def output(job: Path, name: str) -> tuple[Path, Path]:
    """The files with a command's standard output and error."""
    return job / f"{name}.out", job / f"{name}.err"


def run(job: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """Runs the commands to their end; returns the outcome."""
    root = Root.make(job / "layers")
    root.name_hosts(NAMES)
    root.disable_dns()
    system.name_host("weir-guest")
    _prepare_network()
    # Files that options of the link name are read from here. `/mnt` is another folder outside.
    os.chdir(root.path / asked["folder"].lstrip("/"))
    signal.pthread_sigmask(signal.SIG_BLOCK, _CHILD)
    capture = job / CAPTURE if asked["pcap"] else None
    options = [(key, value) for key, value in asked["options"]]
    link = _native.HostLink(
        *("weir0", (INSIDE, HOST), _MTU, options, asked["ways"], asked["seed"], capture),
        addresses6=(INSIDE6, HOST6),
    )
    run_ = _Run(job, root, asked)
    try:
        run_.work(link)
    except NotStartedError as error:
        return {"error": None, "refused": str(error)}
    finally:
        run_.end_all()
        link.close()
    collected = root.collect(asked["folder"], job / WRITTEN)
    return {"error": None, "refused": None, "files": collected, **run_.outcome()}


def enlarge_socket_buffers() -> None:
    """Raises what the kernel grants."""
    for name in ("rmem_max", "wmem_max"):
        Path("/proc/sys/net/core", name).write_text(str(_SOCKET_BUFFER))


def _prepare_network() -> None:
    enlarge_socket_buffers()
    # The kernel's own packets of IPv6 would cross the link, which turns it on without them.
    for interface in ("all", "default"):
        (_IPV6 / interface / "disable_ipv6").write_text("1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        up = struct.pack("16sH14x", b"lo", _IFF_UP)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, up)


@dataclass(slots=True)
class _Run:
    job: Path
    root: Root
    asked: dict[str, Any]
    commands: list[Command] = field(default_factory=list)
    began: float = 0.0
    ended_s: float = 0.0
    report: dict[str, Any] | None = None
    limited: list[str] = field(default_factory=list)
    """The commands that ran still when the time was over."""
    shown: float = 0.0
    progress: int = -1

    def work(self, link: Any) -> None:
        """Starts the server, waits until it is ready, starts the client and waits for its end."""
        self.progress = os.open(self.job / PROGRESS, os.O_WRONLY | os.O_CREAT)
        self.began = time.monotonic()
        if self.asked[SERVER] is not None:
            server = self.start(SERVER)
            self.await_ready(server)
        # What is started from now on is behind the link.
        link.enter()
        client = self.start(CLIENT)
        for _ in self.polled(_EVERY_S):
            if client.code is not None:
                break
        self.ended_s = time.monotonic() - self.began
        self.report = link.report()
        if not self.limited:
            self.end_server()

    def start(self, name: str) -> Command:
        """Starts a command in a process group of its own."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        files = [os.open(path, flags, 0o644) for path in output(self.job, name)]
        # A command that never blocks would let no later moment be shown.
        self.show(at_once=True)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            _become(self.asked[name], self.asked, self.root, files, writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            refusal = pipe.read()
        if refusal:
            os.waitpid(pid, 0)
            raise NotStartedError(f"{self.asked[name][0]}: {os.strerror(int(refusal))}")
        self.commands.append(Command(name, pid, files))
        return self.commands[-1]

    def await_ready(self, server: Command) -> None:
        """Waits until the server is ready, or has ended."""
        ready = Ready(*self.asked["ready"])
        outputs = output(self.job, SERVER)
        for _ in self.polled(POLL_S):
            if ready.is_met(time.monotonic() - self.began, server.pid, outputs):
                return
            if server.code is not None:
                raise NotStartedError(
                    f"--server: it ended with exit code {server.code} before it was ready ({ready})"
                )
        raise NotStartedError(
            f"--server: it was not ready ({ready}) when the time limit was over{ready.hint}"
        )

    def end_server(self) -> None:
        """Lets the server end by itself, then asks it to."""
        server = next((c for c in self.commands if c.name == SERVER), None)
        if server is None:
            return
        for grace_s in GRACE_S:
            until = time.monotonic() + grace_s
            for _ in self.polled(_EVERY_S, until):
                if server.code is not None:
                    return
            os.killpg(server.pid, signal.SIGTERM)

    def polled(self, every_s: float, until: float | None = None) -> Iterator[None]:
        """Yields, reaps and waits, until `until` or the end of the time limit."""
        limit = self.began + self.asked["time_limit_s"]
        while True:
            self.reap()
            self.show()
            yield
            now = time.monotonic()
            if until is not None and now >= until:
                return
            if now >= limit:
                self.limited = [c.name for c in self.commands if c.code is None]
                return
            end = min(limit, until or limit)
            signal.sigtimedwait(_CHILD, min(every_s, max(end - now, 0.0)))

    def reap(self) -> bool:
        """Collects the exit codes, and orphans; returns whether a process is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            for command in self.commands:
                if command.pid == pid:
                    command.code = os.waitstatus_to_exitcode(status)

    def show(self, *, at_once: bool = False) -> None:
        """Hands the outputs and the time to the host, a few times a second."""
        now = time.monotonic()
        if now - self.shown < _EVERY_S and not at_once:
            return
        self.shown = now
        os.pwrite(self.progress, f"{now - self.began:12.3f}\n".encode(), 0)
        for file in (self.progress, *(file for c in self.commands for file in c.files)):
            system.show(file)

    def end_all(self) -> None:
        """Ends every process but this one, and closes the outputs."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                # Of the first process, this means all others.
                os.kill(-1, number)
            until = time.monotonic() + _LEFT_S
            while self.reap() and time.monotonic() < until:
                signal.sigtimedwait(_CHILD, _EVERY_S)
        if self.progress >= 0:
            self.show(at_once=True)
        for command in self.commands:
            for file in command.files:
                os.close(file)

    def outcome(self) -> dict[str, Any]:
        """How the commands ended."""
        codes = {command.name: command.code for command in self.commands}
        return {
            "codes": codes,
            "limited": self.limited,
            "report": self.report,
            "elapsed_s": self.ended_s,
        }


def _become(
    command: list[str], asked: dict[str, Any], root: Root, files: list[int], refusals: int
) -> None:
    """In the child: becomes the command; writes the error number to `refusals` if it cannot."""
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for target, file in enumerate(files, start=1):
            os.dup2(file, target)
        for number in _RESET:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _CHILD)
        system.change_root(str(root.path))
        os.chdir(asked["folder"])
        os.execvpe(command[0], command, asked["environment"])  # noqa: S606 – a list, never a shell
    except OSError as error:
        os.write(refusals, str(error.errno).encode())
    finally:
        os._exit(127)
