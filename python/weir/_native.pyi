"""The compiled core: scenarios in, tables out. Use the package ``weir`` instead."""

from collections.abc import Callable, Mapping, Sequence, Set
from os import PathLike
from pathlib import Path
from random import Random
from typing import Any, Literal, final

from weir.links.emulation import PathReport
from weir.transfer.files import SendSession, SentFile

__all__ = [
    "MAX_FILE_BYTES",
    "MIN_TAIL",
    "AckEvent",
    "CaptureTables",
    "CcContext",
    "CongestionEvent",
    "ControllerError",
    "DatagramLoad",
    "HostLink",
    "HostPart",
    "PacketScript",
    "PathEvent",
    "PathSocket",
    "RunControl",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "Table",
    "TcpReceiver",
    "TcpTransfer",
    "TransferError",
    "TunLink",
    "UdpRelay",
    "_lowered",
    "bucket_size",
    "build",
    "catalogue",
    "find_policer",
    "jain_of_sums",
    "kernel_controllers",
    "kernel_ends",
    "merge_hosts",
    "parse_contender",
    "parse_quantity",
    "read_captures",
    "receive_files",
    "relay_check",
    "router_feedback",
    "send_files",
    "stack_parts",
    "tc_keys",
    "tc_options",
    "tcp_send",
    "version",
]

MAX_FILE_BYTES: int
"""Largest file that a scenario or an option may name."""

MIN_TAIL: int
"""Number of samples that a percentile needs beyond it."""

class ControllerError(RuntimeError):
    """A controller in Python went wrong: file, line, method, and what happened there."""

@final
class CaptureTables:
    """The tables of packet captures."""

    def table(self, name: str) -> Table:
        """The table called `name`: `connections`, `slices`, `points` or `packets`."""

    @property
    def counts(self) -> list[tuple[str, int]]:
        """What the captures contain, by name."""

    @property
    def unread(self) -> list[tuple[str, int]]:
        """What the captures have that is not read, and how often."""

    @property
    def short_packets(self) -> int:
        """Packets of which too little was kept to read them."""

    @property
    def warnings(self) -> list[str]:
        """Why files were not read to their ends."""

@final
class CcContext:
    """What every call of a controller receives about its connection, as it stands now."""

    @property
    def now_ns(self) -> int:
        """The time since the beginning of the run."""

    @property
    def now_s(self) -> float:
        """The same in seconds."""

    @property
    def mss(self) -> int:
        """The largest payload of a segment."""

    @property
    def bytes_in_flight(self) -> int:
        """Sent, neither acknowledged nor lost; in `on_sent` without what is about to leave."""

    @property
    def snd_una(self) -> int:
        """The stream offset below which everything is acknowledged."""

    @property
    def snd_nxt(self) -> int:
        """The stream offset of the next new byte: a round trip ends when `snd_una` passes it."""

    @property
    def delivered(self) -> int:
        """Bytes acknowledged so far, cumulatively or selectively."""

    @property
    def delivered_marked(self) -> int:
        """Of these, the bytes whose acknowledgement echoed a congestion mark."""

    @property
    def next_departure_ns(self) -> int:
        """When the pacer lets the next segment leave; now or earlier where nothing holds it."""

    @property
    def app_limited(self) -> bool:
        """Whether the application, not the network, bounds the delivery rate."""

    @property
    def cwnd_limited(self) -> bool:
        """Whether the window has lately held the sender back: only then may it grow."""

    @property
    def peer_window(self) -> int:
        """The largest window that the peer has offered, or `window_limit` if that is smaller."""

    @property
    def latest_rtt_ns(self) -> int | None:
        """The newest RTT sample."""

    @property
    def srtt_ns(self) -> int | None:
        """RFC 6298's smoothed round trip."""

    @property
    def srtt_s(self) -> float | None:
        """The same in seconds."""

    @property
    def rttvar_ns(self) -> int:
        """RFC 6298's variation."""

    @property
    def min_rtt_ns(self) -> int | None:
        """The smallest round trip of the connection's life."""

    @property
    def min_rtt_s(self) -> float | None:
        """The same in seconds."""

    @property
    def state(self) -> str:
        """Where the recovery epoch stands: `open`, `disorder`, `cwr`, `recovery` or `loss`."""

    @property
    def rng(self) -> Random:
        """Random numbers of this connection, which depend on seed and flow name alone."""

@final
class AckEvent:
    """One acknowledgement, summed up."""

    @property
    def acked(self) -> int:
        """Bytes newly delivered: acknowledged cumulatively or selectively for the first time."""

    @property
    def cum_acked(self) -> int:
        """Bytes by which the cumulative acknowledgement moved."""

    @property
    def lost(self) -> int:
        """Bytes newly declared lost while taking it in."""

    @property
    def rtt_ns(self) -> int | None:
        """The RTT of the newest segment that it acknowledges; None if unknown."""

    @property
    def rtt_s(self) -> float | None:
        """The same in seconds."""

    @property
    def delivery_rate_bps(self) -> int | None:
        """The delivery rate that it implies; None without a valid interval."""

    @property
    def rate_delivered(self) -> int | None:
        """Bytes delivered over the interval of that rate."""

    @property
    def rate_interval_ns(self) -> int | None:
        """The longer of the send and the acknowledgement interval."""

    @property
    def rate_prior_delivered(self) -> int | None:
        """What `delivered` was when the newest acknowledged segment was sent."""

    @property
    def rate_app_limited(self) -> bool | None:
        """Whether the application bounded that rate."""

    @property
    def duplicate(self) -> bool:
        """Whether it moved nothing forward."""

    @property
    def any_order(self) -> bool:
        """Whether the path reorders by more than three segments: then what is delivered counts."""

    @property
    def predicted(self) -> bool:
        """Whether header prediction expects it: no SACK block, no echo, the same window."""

    @property
    def prior_in_flight(self) -> int:
        """Bytes in flight before it was taken in."""

    @property
    def round(self) -> int:
        """How many round trips the connection has seen."""

@final
class CongestionEvent:
    """Congestion was signalled."""

    @property
    def cause(self) -> str:
        """How: `fast_retransmit`, `timeout` or `ecn_echo`."""

    @property
    def backoff(self) -> int:
        """How often the timer had been backed off before this timeout."""

    @property
    def first_in_epoch(self) -> bool:
        """Whether it opens an episode; one episode asks for one reduction."""

    @property
    def lost(self) -> int:
        """Bytes declared lost with it."""

    @property
    def prior_in_flight(self) -> int:
        """Bytes in flight just before anything was declared lost."""

@final
class PathEvent:
    """Something happened to the path or to its use."""

    @property
    def kind(self) -> str:
        """What: `idle_restart` or `mss_changed`."""

    @property
    def idle_ns(self) -> int | None:
        """Of `idle_restart`: how long nothing was sent."""

    @property
    def rto_ns(self) -> int | None:
        """Of `idle_restart`: the retransmission timeout, without back-off."""

    @property
    def mss(self) -> int | None:
        """Of `mss_changed`: the segment size from now on."""

class ScenarioError(ValueError):
    """A scenario that cannot be run: where the mistake is, key, value and what is allowed."""

@final
class Table:
    """A result table. Hand it to ``polars.DataFrame`` or ``pyarrow.table``."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a capsule with an Arrow C stream over the rows."""

@final
class RunResult:
    """The tables of one run."""

    @property
    def tables(self) -> list[str]:
        """The names of the tables."""

    def table(self, name: str) -> Table:
        """Return the table called ``name``. Raises ``KeyError`` if there is none."""

    def to_json(self) -> str:
        """Return every table as one JSON object: name, then column, then its type and cells."""

@final
class HostPart:
    """The ends of a scenario's flows that are on this host, in a run between hosts."""

    def __new__(
        cls,
        scenario: Scenario,
        seed: int,
        sends: Mapping[int, str],
        receives: Sequence[int],
        controllers: Sequence[str],
    ) -> HostPart:
        """Open the sockets of flows that begin here, each with the address of the other host.

        ``receives`` are the flows that end here, ``controllers`` the congestion controls that this
        process may use. Raises ``ScenarioError`` if this host cannot run a flow, and
        ``RuntimeError`` if the system refuses a socket.
        """

    @staticmethod
    def on_path(
        path: PathSocket,
        scenario: Scenario,
        seed: int,
        sends: Set[int],
    ) -> HostPart:
        """The ends of flows of our own transport on one side of a path, which takes its socket.

        Of the flows in ``sends`` it has the sending ends, of all others the receiving ones.
        Raises ``ScenarioError`` if a flow is not one of our transport, or its segments do not fit
        the path.
        """

    def limits(
        self,
    ) -> list[tuple[int, str | None, float | None, float | None, int | None, int | None]]:
        """Return what limited the flows of a path that were sent here, after the run.

        By the rules of ``weir read``: index of the flow, limit, capacity in Mbit/s, rate of a
        policer in Mbit/s, its burst and its bucket in bytes. The second time there are none.
        """

    def latencies(self) -> list[tuple[int, int, int]]:
        """Return round trips of requests that share a flow of a path with its data, after the run.

        Index of the flow, when it was made, and how long it took, in nanoseconds.
        """

    @property
    def refused(self) -> int:
        """Number of datagrams of a path that a packet filter dropped here, after the run."""

    @property
    def bytes_transferred(self) -> int:
        """Number of bytes that flows of our own transport have sent or received so far."""

    def sources(self) -> dict[int, str]:
        """Return the address and port that each flow comes from."""

    def ports(self) -> dict[int, int]:
        """Return the port at which each flow arrives."""

    def run(self, start: int, peers: Mapping[int, str], control: RunControl) -> str:
        """Run from ``start``, in nanoseconds of the monotonic clock; return the record, as JSON.

        ``peers`` has where each flow goes, and where each comes from. Other threads go on
        meanwhile. Raises ``RuntimeError`` if the system refuses something on the way.
        """

def merge_hosts(scenario: Scenario, seed: int, hosts: Sequence[tuple[str, int, str]]) -> RunResult:
    """The tables of a run from its hosts: name, error of the clock in nanoseconds, record.

    Raises ``ScenarioError`` if a record is damaged, ``RuntimeError`` if it does not fit.
    """

@final
class PathSocket:
    """A UDP socket that takes datagrams from one address only."""

    def __new__(cls, remote: str, local: str | None = None) -> PathSocket:
        """Open a socket to ``remote``, at ``local`` or at a free port.

        Raises ``OSError`` if the address cannot be had.
        """

    @property
    def remote(self) -> str:
        """The address of the other end."""

    def handshake(self, datagram: bytes, wait_s: float) -> bool:
        """Send a datagram until the other end returns one with the same first 21 bytes.

        Return whether it did within ``wait_s``. Raises ``OSError`` if the system refuses it.
        """

@final
class DatagramLoad:
    """One end of a load of datagrams: it receives, and sends if there is a rate."""

    def __new__(
        cls, path: PathSocket, token: bytes, kind: int, length: int, rate_bps: float | None = None
    ) -> DatagramLoad:
        """Start it over a socket, which it takes.

        The rate includes the headers of IPv4 and UDP.
        """

    @property
    def sent(self) -> int:
        """Number of datagrams sent so far."""

    @property
    def received_bytes(self) -> int:
        """Bytes of UDP payload received so far."""

    def end_sending(self) -> tuple[int, int] | None:
        """End the sending; return how many datagrams were sent, and how many refused here."""

    def end_receiving(self) -> dict[str, Any] | None:
        """End the receiving; return what was received, in ns of the monotonic clock."""

@final
class PacketScript:
    """A packetdrill script that was read without errors."""

    @staticmethod
    def parse(text: str) -> PacketScript:
        """Reads a script.

        Raises:
            ValueError: the text is no script, or needs what only a kernel has.
        """

    @property
    def cases(self) -> list[str]:
        """The ids of its cases."""

    @property
    def source(self) -> str:
        """Section of an RFC, or title of the test that it restates."""

    @property
    def title(self) -> str:
        """What it shows."""

    @property
    def stack(self) -> str:
        """Loss recovery and congestion control."""

    def exception(self, world: str) -> tuple[Literal["skip", "known"], str] | None:
        """Why `world` is an exception, if it is: the kind and the reason."""

    def run(self, stack: str | None = None) -> tuple[Literal["failed", "refused"], int, str] | None:
        """Runs it against Weir's transport, with another stack if `stack` is given.

        Returns where the transport departs from it: the kind, the line and the message.

        Raises:
            ValueError: there is no such stack.
        """

    def run_on_kernel(
        self, stack: str | None = None
    ) -> tuple[Literal["failed", "refused"], int, str] | None:
        """The same against the TCP of the kernel that this process runs on. Requires root."""

@final
class HostLink:
    """A link from a namespace of its own to that of the calling thread, at work until closed.

    ``device`` is the name of the TUN device at each end, ``addresses`` are those of the namespace
    and of the caller, in one /30; all that the namespace sends elsewhere goes to the caller too.
    ``options`` hold for both directions, the two of ``directions`` (up, from the namespace, and
    down) for one each. Packets are recorded in the file ``capture``, which is there once the link
    has been closed. If it is ``isolated``, the outside is a namespace of its own, in place of the
    caller's. With ``addresses6`` both ends have addresses of IPv6 too, in one /126. Raises
    ``ScenarioError`` for an option that is not allowed, ``OSError`` where namespace or devices
    cannot be made, or packets not be recorded.
    """

    def __new__(
        cls,
        device: str,
        addresses: Sequence[str],
        mtu: int,
        options: Sequence[tuple[str, str]],
        directions: Sequence[str],
        seed: int,
        capture: Path | None = None,
        isolated: bool = False,
        addresses6: Sequence[str] | None = None,
    ) -> HostLink: ...
    def enter(self, far: bool = False) -> None:
        """Move the calling thread into the namespace, for good; ``far`` into the one outside."""

    def report(self) -> PathReport:
        """Return what it did so far: counters per direction, lateness, warnings."""

    def close(self) -> None:
        """Remove it; a second time nothing happens."""

@final
class TunLink:
    """A link between two network namespaces of its own, at work until it is stopped.

    ``addresses`` are the IPv4 addresses of the two ends. ``options`` hold for both directions, the
    two of ``directions`` (from the first to the second, and back) for one each. ``offload`` says
    whether the kernel hands over superpackets: ``auto``, ``off`` or ``on``. Raises
    ``ScenarioError`` for an option that is not allowed, ``OSError`` where namespaces or devices
    cannot be made.
    """

    def __new__(
        cls,
        addresses: Sequence[str],
        mtu: int,
        options: Sequence[tuple[str, str]],
        directions: Sequence[str],
        seed: int,
        offload: str,
    ) -> TunLink: ...
    @property
    def namespaces(self) -> list[Path]:
        """The files that stand for the namespaces until it is stopped."""

    def report(self) -> PathReport:
        """Return what it did so far: counters per direction, lateness, warnings."""

    def stop(self) -> PathReport:
        """Stop it and return the last report."""

@final
class UdpRelay:
    """A relay between UDP programs, at work until it is stopped.

    It listens at the first of two ``addresses``, written ``HOST:PORT``, and relays to the second,
    for up to ``clients`` at a time, each until it has been silent for ``idle``. ``options`` hold
    for both directions, the two of ``directions`` (up to the server, down) for one each;
    ``serial`` makes it one server that sleeps for every datagram. Corruption flips 1 to
    ``corrupt_bits`` bits.

    Raises ``ScenarioError`` for an option that is not
    allowed, ``ValueError`` for an address that is none, ``OSError`` where it cannot listen.
    """

    def __new__(
        cls,
        addresses: Sequence[str],
        options: Sequence[tuple[str, str]],
        directions: Sequence[str],
        serial: bool,
        seed: int,
        clients: int,
        idle: str,
        corrupt_bits: int = 1,
    ) -> UdpRelay: ...
    @property
    def address(self) -> str:
        """Where clients send to."""

    def report(self) -> PathReport:
        """Return what it did so far: counters per direction, lateness, warnings."""

    def stop(self) -> PathReport:
        """Stop it and return the last report."""

@final
class TcpTransfer:
    """What a transfer over the kernel's TCP moved, and when.

    A transfer takes from the sender's ``began_ns``, just before it connected, to the receiver's
    ``ended_ns``, when the last byte was in its file. Both are ``CLOCK_MONOTONIC``, which all
    processes of a machine share.
    """

    @property
    def bytes(self) -> int:
        """The file's size."""

    @property
    def began_ns(self) -> int:
        """When it began, in nanoseconds of ``CLOCK_MONOTONIC``."""

    @property
    def ended_ns(self) -> int:
        """When it ended, in nanoseconds of ``CLOCK_MONOTONIC``."""

@final
class TcpReceiver:
    """Waits for files over the kernel's TCP."""

    def __new__(cls, address: str, *, controller: str | None = None) -> TcpReceiver:
        """Listen on ``address``, ``host:port`` in numbers; port 0 lets the system choose.

        Raises ``OSError`` if it cannot be had, ``ValueError`` if the kernel has no congestion
        control called ``controller``.
        """

    @property
    def address(self) -> str:
        """Where it listens, as ``host:port``."""

    def receive(self, path: str, *, timeout_s: float | None = None) -> TcpTransfer:
        """Receive one file, 256 KiB at a time. Other threads go on meanwhile.

        Raises ``TimeoutError`` after ``timeout_s``, ``OSError`` where the system refuses something.
        """

@final
class RunControl:
    """Runs in real time, as seen and broken off from another thread."""

    def __new__(cls) -> RunControl: ...
    def stop(self) -> None:
        """Stop the runs in progress, and those that begin later."""

    @property
    def is_stopped(self) -> bool:
        """Whether the runs have been broken off."""

    @property
    def elapsed_s(self) -> float:
        """How long the run in progress has lasted."""

def catalogue() -> dict[str, list[dict[str, Any]]]:
    """Return what a scenario may name: one list per kind."""

def jain_of_sums(count: int, total: float, squares: float) -> float | None:
    """Return Jain's index from the sums of ``count`` values and of their squares.

    ``None`` for fewer than two values, or when all are zero.
    """

def kernel_controllers() -> list[str]:
    """Return Linux's own congestion controls."""

def kernel_ends() -> tuple[str, str, int]:
    """Return, of world ``kernel``, the addresses of senders and receivers and flow 0's port."""

def parse_contender(stack: str) -> tuple[str, list[tuple[str, str]]] | None:
    """Return the definition and the parameters of ``contender:NAME(key=value,…)``.

    ``None`` if it is another stack. Raises ``ValueError`` naming what is allowed.
    """

def parse_quantity(kind: Literal["time", "rate", "size", "ratio"], text: str) -> float:
    """Read a quantity: seconds, bits per second, bytes, or a fraction.

    Raises ``ValueError`` naming the value and what is allowed.
    """

@final
class Scenario:
    """A scenario that has been checked, ready to run."""

    @staticmethod
    def parse(toml_text: str, overrides: Sequence[tuple[str, str]], source: str) -> Scenario:
        """Read a scenario in TOML, with ``overrides`` (dotted key, value) on top of it.

        ``source`` is its path, for messages and for the trace files next to it. Raises
        ``ScenarioError``.
        """

    @staticmethod
    def from_json(text: str) -> Scenario:
        """Read the canonical form. Raises ``ScenarioError``."""

    def fields(self) -> dict[str, Any]:
        """Return the canonical form, as a dictionary."""

    def at(self, point: Sequence[tuple[str, str]]) -> Scenario:
        """Return the scenario at a point of a sweep, as if each key had been overridden.

        Raises ``ScenarioError``.
        """

    def check(self, world: str) -> None:
        """Raise ``ScenarioError`` if ``world`` cannot run it as it is."""

    def check_kernel(self, controllers: Sequence[str], *, netem: bool = False) -> None:
        """Raise ``ScenarioError`` if a kernel with these congestion controls cannot run it.

        With ``netem``, if that cannot stand in for its links.
        """

    def check_capture(self) -> None:
        """Raise ``ScenarioError`` if the simulator cannot record its packets as it runs."""

    def run(
        self,
        seed: int,
        world: str = "sim",
        control: RunControl | None = None,
        capture: str | PathLike[str] | None = None,
        *,
        capture_from_zero: bool = False,
        programs: Sequence[Mapping[str, Any]] = ...,
    ) -> RunResult:
        """Run it. Other threads go on meanwhile.

        Without a ``control`` the run looks for signals itself. In the worlds ``sim`` and ``kernel``
        packets are recorded in the file ``capture``, with times from 1970, or in the simulator and
        with ``capture_from_zero`` from the beginning of the run. ``programs`` has the commands of
        each flow between programs. Raises ``ScenarioError`` if it
        cannot be run in this world, ``RuntimeError`` if a checker finds that the run went wrong,
        it was broken off, or the system refused, and ``ControllerError`` if a controller in
        Python did.
        """

    def lone_draws(self, seed: int) -> str | None:
        """What the controller draws from in the simulator, if there is one connection alone.

        The state of the generator (PCG XSL 128/64 MCG), in 32 hexadecimal digits.
        """

    def record(self, seed: int, folder: str | PathLike[str], stem: str) -> RunResult:
        """Run it in the simulator, and record what passes its interfaces.

        These are those of the senders, of the receivers, before and after each monitored link. Each
        has a file, ``STEM-INTERFACE.pcapng`` in ``folder``. Other threads go on meanwhile. Raises
        as ``run``, and ``RuntimeError`` if a file cannot be written.
        """

def _lowered() -> int:
    """Return how many scenarios this process has lowered to what worlds run; for tests."""

def tc_options(text: str) -> list[tuple[str, str]]:
    """What ``tc`` says of one direction of a link, as options of ``weir link`` with their values.

    Raises ``ValueError``, naming the word, for what cannot be read or has no like here.
    """

def tc_keys(forward: str, reverse: str | None = None) -> list[tuple[str, str]]:
    """What ``tc`` says of the way of the data and of the way back, as keys of ``[topology]``.

    Raises ``ValueError``, naming the text and the word, for what cannot be read or has no like.
    """

def tcp_send(
    path: str,
    address: str,
    *,
    controller: str | None = None,
    write_size: int | None = None,
    timeout_s: float | None = None,
) -> TcpTransfer:
    """Send a file over the kernel's TCP. Other threads go on meanwhile.

    It travels by ``sendfile`` unless ``write_size`` says how many bytes to write at a time.
    ``address`` is ``host:port`` in numbers, ``controller`` the kernel's congestion control. Raises
    ``TimeoutError`` after ``timeout_s``, ``ValueError`` if the kernel has no such congestion
    control, ``OSError`` where the system refuses something.
    """

def version() -> str:
    """Return the version of the compiled core."""

def build() -> tuple[str | None, list[str]]:
    """Return the commit that it was built from, if it is known, and its optional features."""

def relay_check(delay: str, gap: str, size: int, count: int) -> dict[str, Any]:
    """Return how precise a relay is here, from ``count`` datagrams, one per ``gap``."""

class TransferError(Exception):
    """A transfer that did not happen: why, in one line."""

def router_feedback(stack: str) -> str | None:
    """Return the kind of routers' feedback that the controller of a stack goes by.

    As key ``feedback`` of a scenario has it: ``int`` of ``hpcc``. ``None`` of a controller that
    goes by none, and of stacks of other projects.
    """

def stack_parts(stack: str) -> tuple[str, str, str, str | None]:
    """Return the host, the recovery scheme, the controller and its algorithm of a stack.

    The host is ``weir``, another project as ``quinn``, or ``contender:NAME``. Recovery scheme and
    controller have their parameters; the scheme is ``rack`` if left out, and empty for stacks of
    other projects. The algorithm is ``cubic`` of ``noq/weir-cubic``, and ``None`` of a class in
    Python. Nothing checks whether there are such a scheme and such a controller.
    """

def send_files(
    paths: Sequence[str | PathLike[str]],
    target: str,
    *,
    stack: str,
    mss: str,
    initial_window: int,
    rate: str | None,
    pacing: bool,
    max_retransmits: int,
    max_wait: str,
    on_event: Callable[[str, Any], object],
    key_file: str | PathLike[str] | None = None,
) -> tuple[list[SentFile], SendSession]:
    """Send files to ``target`` (``HOST:PORT``): a row per file, and facts about the whole.

    ``on_event("progress", facts)`` is called several times a second; what it raises ends the
    transfer. After Ctrl-C the facts say ``interrupted``. The stack ``udp`` sends bare datagrams.
    Raises ``ValueError`` for options, addresses and keys, ``TransferError`` if a file cannot be
    read, ``KeyboardInterrupt`` before anything was sent.
    """

def bucket_size(packets: Sequence[tuple[int, int]], rate: float, end: int) -> float:
    """Return the bytes of a token bucket of `rate`, in bits per second, that packets emptied.

    Of each packet: time in nanoseconds, bytes. The bucket was full before them, and empty at `end`.
    """

def find_policer(
    sent: Sequence[tuple[int, int, int | None, bool]],
) -> tuple[float, int, int] | None:
    """Look for a policer in the packets of a flow as its sender knows them.

    Of each packet: time in nanoseconds, bytes, RTT in microseconds, whether it was lost. Return its
    rate in bits per second, the bytes before the first loss, and those that its bucket holds.
    """

def read_captures(files: Sequence[tuple[str, Path]], *, packets: bool = False) -> CaptureTables:
    """Reads captures, each with its name for tables and messages.

    With `packets` the data packets have a table too.

    Raises:
        ValueError: a file is no capture.
        OSError: it cannot be read.
    """

def receive_files(
    folder: str | PathLike[str],
    bind: str,
    *,
    max_size: str | None,
    max_files: int,
    folders: bool,
    once: bool,
    on_event: Callable[[str, Any], object],
    memory: str,
    quota: str | None,
    partial_expiry: str,
    key_file: str | PathLike[str] | None = None,
    key_dir: str | PathLike[str] | None = None,
) -> None:
    """Receive files into ``folder`` until interrupted, or with ``once`` one session's.

    All senders together get at most ``memory`` for what they send early or unasked. All files
    in the folder take at most ``quota``; partial ones are removed after ``partial_expiry``.
    ``on_event`` is called with ``listening`` (``address``), ``progress`` several times a second,
    ``warning`` (``text``), and ``ended`` (``sender``, ``key``, ``failure``, ``rows``, and in
    ``omitted`` how many files of each verdict have no row) when a session is over; what it raises
    ends the receiver.

    Raises ``ValueError`` for options, address and key, ``TransferError`` if the folder or the port
    cannot be had, ``KeyboardInterrupt`` at Ctrl-C.
    """
