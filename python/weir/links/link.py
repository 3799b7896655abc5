"""Commands behind an emulated link: `weir link` from Python.

>>> with Link(rate="20mbit", rtt="40ms", queue="1bdp") as link:  # doctest: +SKIP
...     done = link.run(["sh", "-c", "ping -c 3 $WEIR_LINK_HOST"])
...     report = link.report()
>>> report["up"]["sent"]  # doctest: +SKIP
3

A command runs in its own network namespace, whose only route is a TUN device. Its packets pass
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
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

from weir import _native
from weir.base.errors import InputError, WeirError
from weir.base.options import Option, documented
from weir.links.emulation import PathReport, native_errors
from weir.links.ends import HOST6, HOST6_VARIABLE, HOST_VARIABLE, INSIDE6, ipv6_ends, with_addresses
from weir.links.options import LinkOptions
from weir.processes import cleanup, netns

_MTU = 1500
_IPV6 = Path("/proc/sys/net/ipv6")
_NETWORKS = 256
"""Networks 100.64.N.0/30 (RFC 6598) for the two ends of a link."""


@documented()
@dataclass(kw_only=True, eq=False)
class Link(LinkOptions):
    """A link with a new network namespace behind it. Linux, requires root.

    It is a context manager: its start creates both, its end removes them. The options are those of
    `weir link`: quantities are text with a unit, and `up` (from the commands) and `down` override
    them for one direction, as in `"loss=10%,jitter=5ms"`.

    Raises:
        InputError: two options exclude each other, or `tc` cannot be read.
    """

    pcap: Annotated[
        str | Path | None,
        Option(
            "File for the packets at both ends; it is complete when the link has ended.",
            python_only=True,
        ),
    ] = None
    isolated: Annotated[
        bool,
        Option(
            "Whether the far end is a namespace of its own, for commands started there.",
            python_only=True,
        ),
    ] = False
    host: str = field(init=False, repr=False)
    """The address of the caller's namespace, as commands see it."""
    host6: str | None = field(init=False, repr=False)
    """Its IPv6 address, if the kernel has IPv6."""
    inside: str = field(init=False, repr=False)
    """The address of the commands."""
    confined: str | None = field(init=False, repr=False)
    """Why only the host can be reached from behind the link, if so."""

    def __post_init__(self) -> None:
        """Checks the options."""
        self._pairs, self._directions = self.to_native()
        self._native: _native.HostLink | None = None

    def __enter__(self) -> Self:
        """Creates it.

        Raises:
            NamespaceError: the machine lacks something, which it names.
            ScenarioError: an option is not allowed.
        """
        lacking = netns.missing()
        if lacking is not None:
            raise netns.NamespaceError(
                f"{lacking}, which a link needs; weir relay works without it for UDP programs, "
                "and weir run for simulations"
            )
        with native_errors(), ExitStack() as stack:
            self._create(stack)
            self._cleanup = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._native = None
        self._cleanup.close()

    def _create(self, stack: ExitStack) -> None:
        device = f"weir-{os.getpid()}"
        with cleanup.locked():
            number = _free_network()
            network = f"100.64.{number}.0/30"
            self.host, self.inside = f"100.64.{number}.1", f"100.64.{number}.2"
            ends = (self.inside, self.host)
            ends6 = (INSIDE6, HOST6) if self.isolated else ipv6_ends(number)
            self.host6 = ends6[1] if _IPV6.is_dir() else None
            try:
                self._native = _native.HostLink(
                    device,
                    ends,
                    _MTU,
                    self._pairs,
                    self._directions,
                    self.seed,
                    None if self.pcap is None else Path(self.pcap),
                    self.isolated,
                    None if self.host6 is None else ends6,
                )
            except OSError as error:
                raise netns.NamespaceError(str(error)) from None
            stack.callback(self._native.close)
        if self.isolated:
            self.confined = "it is a namespace of its own"
            return
        self.confined = None
        try:
            stack.enter_context(cleanup.masqueraded(network, device))
        except cleanup.OutsideError as error:
            self.confined = str(error)

    def start(
        self, command: Sequence[str], *, far: bool = False, **how: Any
    ) -> subprocess.Popen[bytes]:
        """Starts `command` behind the link; under `sudo` as the calling user.

        With `far` it starts at the far end, which `isolated` must have made. `how` are further
        arguments of `subprocess.Popen`, as in `stdout=subprocess.PIPE`.

        Raises:
            InputError: there is no such command, or it may not be run.
        """
        native, user = self._running(), _caller()
        variables = how.pop("env", None) or os.environ
        environment = {HOST_VARIABLE: self.host, **variables, **user.environment}
        # Only IPv4 goes on to the host of an outer link, and none of it if this one is apart.
        if self.isolated:
            environment[HOST_VARIABLE] = self.host
        environment.pop(HOST6_VARIABLE, None)
        if self.host6 is not None:
            environment[HOST6_VARIABLE] = self.host6

        def start() -> subprocess.Popen[bytes]:
            native.enter(far)
            words = with_addresses(command, environment)
            return subprocess.Popen(words, env=environment, **user.options, **how)

        try:
            # Namespaces belong to threads: a child starts in that of the thread.
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(start).result()
        except OSError as error:
            raise InputError(f"{command[0]}: {error.strerror}") from None

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        """Runs `command` behind the link to its end and captures its output.

        Raises:
            InputError: there is no such command, or it may not be run.
        """
        with self.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            out, err = process.communicate()
        return subprocess.CompletedProcess(list(command), process.returncode, out, err)

    def report(self) -> PathReport:
        """Returns the counters so far, until the link ends.

        Raises:
            RunError: the link has failed.
        """
        with native_errors():
            return self._running().report()

    def _running(self) -> _native.HostLink:
        if self._native is None:
            raise RuntimeError("the link is not running: use it in a with statement")
        return self._native


def terminate_behind(command: subprocess.Popen[bytes]) -> None:
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


def _connected(tables: Path) -> set[int]:
    """Returns each N with a socket in `tables` (proc(5)) connected to an address of link N."""
    found = set[int]()
    for protocol in ("tcp", "tcp6", "udp", "udp6"):
        with suppress(OSError):  # this kernel has no IPv6
            table = (tables / protocol).read_text()
            found |= {int(v4 or v6, 16) for v4, v6 in _PEER.findall(table)}
    return found


_PEER = re.compile(
    r"""
    ^\s*\d+:\ \w+:\w+\ # the socket's own address
    (?:
        (?:0{16}FFFF0000)?02(\w\w)4064 # 100.64.N.2, in IPv6 too
        | 000100FD(\w\w)006400\w{16} # fd00:100:64:N::
    )
    :\w+\ (?!06) # TIME_WAIT only answers
    """,
    re.MULTILINE | re.VERBOSE,
)
"""A line of a table of sockets; each word of an address is in the order of this machine's bytes."""


def _free_network() -> int:
    """Returns the first N such that 100.64.N.0/24 has no interface and no open connection.

    Searches all network namespaces: behind two links, the addresses of the outer one are not
    visible, but packets to the host are routed through it. A connection that outlives its link
    goes on to send: those packets would cross the next link with its addresses.
    """
    seen, taken = set[int](), set[int]()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or we have no permission
            namespace = (process / "ns/net").stat().st_ino
            if namespace not in seen:
                known = (process / "net/fib_trie").read_text()
                seen.add(namespace)
                taken |= {int(number) for number in re.findall(r"\b100\.64\.(\d+)\.", known)}
                taken |= _connected(process / "net")
    free = next((number for number in range(_NETWORKS) if number not in taken), None)
    if free is None:
        raise netns.NamespaceError("no network 100.64.N.0/30 is free for a link")
    return free
