"""A command behind an emulated link: `weir link`.

The command runs in a network namespace of its own, whose only way out is a TUN device. What is
sent there crosses the simulator's path pieces, in a thread of this process, and comes out of a
second TUN device in the namespace of the caller; what comes back crosses those of the other
direction. So links nest: behind one, the namespace of the caller is that of its command.
"""

from __future__ import annotations

import os
import pwd
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir import _native, leftovers, netns
from weir.errors import InputError, WeirError

HOST_VARIABLE = "WEIR_LINK_HOST"
"""Tells the command at which address the host is that the outermost link starts from."""

_MTU = 1500
_NETWORKS = 256
"""Networks 100.64.N.0/30 (RFC 6598) for the two ends of a link."""


@dataclass(slots=True)
class Link:
    """A link at work, and the namespace behind it."""

    host: str
    """The address of the caller's namespace, as the command sees it."""
    inside: str
    """The address of the command."""
    confined: str | None
    """Why only the host can be reached from behind the link, if so."""
    _native: _native.HostLink = field(repr=False)

    def start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts `command` behind the link, as the user who called `sudo` if it was that.

        Raises:
            InputError: there is no such command, or it may not be run.
        """
        user = _caller()
        environment = {HOST_VARIABLE: self.host, **os.environ, **user.environment}

        def start() -> subprocess.Popen[bytes]:
            self._native.enter()
            return subprocess.Popen(command, env=environment, **user.options)

        try:
            # Namespaces belong to threads: what one starts is in its own from the beginning.
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(start).result()
        except OSError as error:
            raise InputError(f"{command[0]}: {error.strerror}") from None

    def report(self) -> dict[str, Any]:
        """Counters per direction (``up`` is from the command), lateness in ms, complaints."""
        return self._native.report()


@contextmanager
def opened(
    options: Sequence[tuple[str, str]],
    ways: tuple[str, str],
    seed: int = 1,
    pcap: Path | None = None,
) -> Iterator[Link]:
    """Makes a link with a new namespace behind it; at the end everything is as it was.

    `options` are those of `weir relay`, for both directions; those of `ways` (up and down, as in
    ``"loss=10%,delay=5ms"``) say what differs. The packets at both ends are recorded in the file
    `pcap`, which is there at the end.

    Raises:
        NamespaceError: where the machine lacks something, which it names.
        ScenarioError: if an option is not allowed.
    """
    lacking = netns.missing()
    if lacking is not None:
        raise netns.NamespaceError(
            f"{lacking}, which a link needs; weir relay does without for programs over UDP, and "
            "weir run for whole experiments"
        )
    device = f"weir-{os.getpid()}"
    with ExitStack() as stack:
        with leftovers.locked():
            number = _free_network()
            network = f"100.64.{number}.0/30"
            host, inside = f"100.64.{number}.1", f"100.64.{number}.2"
            try:
                native = _native.HostLink(device, (inside, host), _MTU, options, ways, seed, pcap)
            except OSError as error:
                raise netns.NamespaceError(str(error)) from None
            stack.callback(native.close)
        confined = None
        try:
            stack.enter_context(leftovers.masqueraded(network, device))
        except leftovers.OutsideError as error:
            confined = str(error)
        yield Link(host, inside, confined, native)


def end_all_behind(command: subprocess.Popen[bytes]) -> None:
    """Asks a command to end, and with it whatever else is behind its link.

    A shell that ends leaves what it has started. A process group of its own would reach that, but
    would also take the terminal away from the command.
    """
    try:
        # As long as this is open no other namespace can be taken for it.
        held = os.open(f"/proc/{command.pid}/ns/net", os.O_RDONLY)
    except OSError:
        return
    try:
        inside, ours = os.fstat(held), Path("/proc/self/ns/net").stat()
        command.terminate()
        told = set[str]()
        # What they start meanwhile is found at the next look.
        while not os.path.samestat(inside, ours) and (new := _processes_in(inside) - told):
            for number in new:
                with suppress(ProcessLookupError):
                    os.kill(int(number), signal.SIGTERM)
            told |= new
    finally:
        os.close(held)


def _processes_in(namespace: os.stat_result) -> set[str]:
    found = set[str]()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.path.samestat((process / "ns/net").stat(), namespace):
                found.add(process.name)
    return found


def resolvers_are_local() -> bool:
    """Whether names are resolved on this host's loopback, which nobody reaches behind a link."""
    try:
        text = Path("/etc/resolv.conf").read_text()
    except OSError:
        return False
    servers = re.findall(r"^\s*nameserver\s+(\S+)", text, re.MULTILINE)
    return bool(servers) and all(s.startswith("127.") or s == "::1" for s in servers)


@dataclass(frozen=True, slots=True)
class _User:
    """Who is to run a command: options of `subprocess`, and the environment that goes with it."""

    options: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def _caller() -> _User:
    """Whoever called `sudo`; otherwise who we are."""
    uid = os.environ.get("SUDO_UID", "")
    if os.geteuid() != 0 or not uid.isdigit() or uid == "0":
        return _User()
    try:
        entry = pwd.getpwuid(int(uid))
    except KeyError:
        raise WeirError(f"SUDO_UID={uid}: there is no such user") from None
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    options = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": groups}
    name = entry.pw_name
    return _User(options, {"HOME": entry.pw_dir, "USER": name, "LOGNAME": name})


def _free_network() -> int:
    """The first N such that nothing on this machine has an address in 100.64.N.0/24.

    Looked for in all network namespaces: behind two links, the addresses of the outer one are not
    to be seen, but are what leads to the host.
    """
    seen, taken = set[int](), set[int]()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is not ours to look at
            namespace = (process / "ns/net").stat().st_ino
            if namespace not in seen:
                known = (process / "net/fib_trie").read_text()
                seen.add(namespace)
                taken |= {int(number) for number in re.findall(r"\b100\.64\.(\d+)\.", known)}
    free = next((number for number in range(_NETWORKS) if number not in taken), None)
    if free is None:
        raise netns.NamespaceError("no network 100.64.N.0/30 is free for a link")
    return free
