"""A command behind an emulated link: `weir link`.

The command runs in its own network namespace, whose only route is a TUN device. Its packets pass
the simulator's path, in a thread of this process, and leave through a second TUN device in the
caller's namespace. Packets of the other direction pass a path of their own. Links can be nested:
the caller's namespace is then the one behind the outer link.
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

from weir import _native, cleanup, netns
from weir.errors import InputError, WeirError

HOST_VARIABLE = "WEIR_LINK_HOST"
"""Environment variable with the address of the outermost link's host."""

_MTU = 1500
_NETWORKS = 256
"""Networks 100.64.N.0/30 (RFC 6598) for the two ends of a link."""


@dataclass(slots=True)
class Link:
    """A running link and the namespace behind it."""

    host: str
    """The address of the caller's namespace, as the command sees it."""
    inside: str
    """The address of the command."""
    confined: str | None
    """Why only the host can be reached from behind the link, if so."""
    _native: _native.HostLink = field(repr=False)

    def start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts `command` behind the link; under `sudo` as the calling user.

        Raises:
            InputError: there is no such command, or it may not be run.
        """
        user = _caller()
        environment = {HOST_VARIABLE: self.host, **os.environ, **user.environment}

        def start() -> subprocess.Popen[bytes]:
            self._native.enter()
            return subprocess.Popen(command, env=environment, **user.options)

        try:
            # Namespaces belong to threads: a child starts in that of the thread.
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(start).result()
        except OSError as error:
            raise InputError(f"{command[0]}: {error.strerror}") from None

    def report(self) -> dict[str, Any]:
        """Returns counters per direction (``up`` is from the command), lateness in ms, warnings."""
        return self._native.report()


@contextmanager
def opened(
    options: Sequence[tuple[str, str]],
    ways: tuple[str, str],
    seed: int = 1,
    pcap: Path | None = None,
) -> Iterator[Link]:
    """Creates a link with a new namespace behind it; removes both at the end.

    `options` are those of `weir relay`, for both directions. `ways` (up and down, as in
    ``"loss=10%,delay=5ms"``) overrides them per direction. The packets at both ends are recorded in
    the file `pcap`, which is complete at the end.

    Raises:
        NamespaceError: where the machine lacks something, which it names.
        ScenarioError: if an option is not allowed.
    """
    lacking = netns.missing()
    if lacking is not None:
        raise netns.NamespaceError(
            f"{lacking}, which a link needs; weir relay works without it for UDP programs, and "
            "weir run for simulations"
        )
    device = f"weir-{os.getpid()}"
    with ExitStack() as stack:
        with cleanup.locked():
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
            stack.enter_context(cleanup.masqueraded(network, device))
        except cleanup.OutsideError as error:
            confined = str(error)
        yield Link(host, inside, confined, native)


def end_all_behind(command: subprocess.Popen[bytes]) -> None:
    """Terminates a command and all other processes behind its link.

    A shell that ends leaves its children running. A separate process group would reach them, but
    would also take the terminal away from the command.
    """
    try:
        # While this is open, the inode cannot be reused by another namespace.
        held = os.open(f"/proc/{command.pid}/ns/net", os.O_RDONLY)
    except OSError:
        return
    try:
        inside, ours = os.fstat(held), Path("/proc/self/ns/net").stat()
        command.terminate()
        signalled = set[str]()
        # Processes that they start meanwhile are found in the next round.
        while not os.path.samestat(inside, ours) and (new := _processes_in(inside) - signalled):
            for number in new:
                with suppress(ProcessLookupError):
                    os.kill(int(number), signal.SIGTERM)
            signalled |= new
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
    """Whether DNS servers are on this host's loopback, which is not reachable behind a link."""
    try:
        text = Path("/etc/resolv.conf").read_text()
    except OSError:
        return False
    servers = re.findall(r"^\s*nameserver\s+(\S+)", text, re.MULTILINE)
    return bool(servers) and all(s.startswith("127.") or s == "::1" for s in servers)


@dataclass(frozen=True, slots=True)
class _User:
    """The user to run a command as: options of `subprocess`, and environment variables."""

    options: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def _caller() -> _User:
    """Returns the user who called `sudo`; otherwise the current user."""
    uid = os.environ.get("SUDO_UID", "")
    if os.geteuid() != 0 or not uid.isdigit() or uid == "0":
        return _User()
    try:
        entry = pwd.getpwuid(int(uid))
    except KeyError:
        raise WeirError(f"SUDO_UID={uid}: no such user") from None
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    options = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": groups}
    name = entry.pw_name
    return _User(options, {"HOME": entry.pw_dir, "USER": name, "LOGNAME": name})


def _free_network() -> int:
    """Returns the first N such that no interface on this machine has an address in 100.64.N.0/24.

    Searches all network namespaces: behind two links, the addresses of the outer one are not
    visible, but packets to the host are routed through it.
    """
    seen, taken = set[int](), set[int]()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or we have no permission
            namespace = (process / "ns/net").stat().st_ino
            if namespace not in seen:
                known = (process / "net/fib_trie").read_text()
                seen.add(namespace)
                taken |= {int(number) for number in re.findall(r"\b100\.64\.(\d+)\.", known)}
    free = next((number for number in range(_NETWORKS) if number not in taken), None)
    if free is None:
        raise netns.NamespaceError("no network 100.64.N.0/30 is free for a link")
    return free
