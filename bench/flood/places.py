"""Each attack by itself: how long honest users wait next to it.

`weir recv`, `weir test --server` and `weir relay` have a limited number of places. Attackers from
1, 40 or 1,000 addresses, each of a network of its own, take as many as they get, keep them as
cheaply as they can, and come back when they lose them. Each kind of `attackers` is here too.
Meanwhile a file of 1 kB is sent again and again, or a path is tested for half a second.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.flood import frames
from bench.flood.attackers import KINDS
from bench.flood.attackers import UNANSWERED as UNANSWERED_KINDS
from bench.flood.frames import WELCOME
from bench.flood.measure import known_target
from bench.flood.processes import Attack, Counts, attackers
from bench.flood.segments import SYN, SYN_OPTIONS, Address, Connection, Segment, emit
from bench.flood.target import Target, host
from weir.base.errors import WeirError
from weir.pathtest.client import Client
from weir.probes.record import Order
from weir.transfer import files

ADDRESSES = (1, 40, 1_000)
IN_TIME_S = 5.0
_CONNECTIONS = 1_100
"""More than a receiver has places."""
_TRIES = 5
_KEY = bytes(range(32))
_BEGINNING_S = 2.0
"""For how long `crumbs` opens connections before it uses those that it has."""
_STEPS_PER_S = 300
"""Of a kind of attacker that is alone."""
_KNOWN_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class Wait:
    """How long an honest user waited during an attack."""

    attack: str
    addresses: int
    times_s: tuple[float, ...]
    """Each infinite if it failed."""
    per_s: float
    """Steps of the attackers: datagrams, or connections begun."""
    heard: int
    """How often an attacker got an answer that one in form gets, or a connection,"""
    turned_away: int
    """and how often it was turned away because of its form."""
    faults: tuple[str, ...]
    """Why attackers attacked nothing, if they did not."""

    @property
    def longest_s(self) -> float:
        """The longest time."""
        return max(self.times_s)


# The attacks: each runs in a process of its own until it is killed, and counts what it hears.
Run = Callable[[Target, Counts], None]


def _count(counts: Counts, target: Target, name: str) -> None:
    counts[:] = [of[name] for of in (target.steps, target.heard, target.turned_away)]


def crumbs(target: Target, counts: Counts) -> None:
    """Connections that announce a file and bring one new byte every 2.5 s."""
    rng = random.Random(1)  # noqa: S311
    beginning = len(frames.beginning(rng))
    kept: list[tuple[Connection, int]] = []
    while True:
        began = time.monotonic()
        for n in range(_CONNECTIONS):
            # One that gets no place takes a while, and those that have one must not be late.
            may_begin = time.monotonic() - began < _BEGINNING_S
            if n == len(kept):
                if not may_begin:
                    break
                kept.append((_begun(rng, target, n), 0))
                continue
            connection, brought = kept[n]
            connection.read()
            target.hear("crumbs", connection, WELCOME)
            if connection.is_open and not connection.is_over:
                connection.say(beginning + brought, b"x")
                kept[n] = connection, brought + 1
            elif may_begin:
                connection.close()
                kept[n] = _begun(rng, target, n), 0
            target.steps["crumbs"] += 1
            _count(counts, target, "crumbs")
        time.sleep(max(0.0, began + 2.5 - time.monotonic()))


def _begun(rng: random.Random, target: Target, number: int) -> Connection:
    connection = Connection(rng, target.address, host(number, target.addresses))
    if connection.wait(0.2):
        connection.say(0, frames.beginning(rng))
    return connection


def litterers(target: Target, counts: Counts) -> None:
    """Connections that begin a file with one byte and reset, as fast as they can."""
    rng = random.Random(1)  # noqa: S311
    for n in itertools.count():
        connection = _begun(rng, target, n)
        if n % _ASKED_EVERY == 0 and connection.is_open:
            time.sleep(0.1)
            connection.read()
            target.hear("litter", connection, WELCOME)
        connection.reset()
        connection.close()
        target.steps["litter"] += 1
        _count(counts, target, "litter")


_ASKED_EVERY = 100
"""One in this many connections waits for its answer."""


def idle_clients(target: Target, counts: Counts) -> None:
    """TCP connections that say nothing, opened again when they are closed."""
    selector = selectors.DefaultSelector()
    while True:
        while len(selector.get_map()) < _CONNECTIONS - 100:
            one = socket.socket()
            one.bind((host(counts[0], target.addresses), 0))
            one.settimeout(1.0)
            counts[0] += 1
            with suppress(OSError):
                one.connect(target.address)
                one.setblocking(False)
                selector.register(one, selectors.EVENT_READ)
                counts[1] += 1
        for key, _ in selector.select(1.0):
            selector.unregister(key.fileobj)
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()


def drips(target: Target, counts: Counts, every_s: float = 1.0, opening: bool = False) -> None:
    """UDP sockets that send one byte every second each, or an opening, which gets an answer."""
    rng = random.Random(1)  # noqa: S311
    sockets = []
    for n in range(max(_DRIPPING, target.addresses)):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind((host(n, target.addresses), 0))
        one.setblocking(False)
        sockets.append(one)
    while True:
        began = time.monotonic()
        for one in sockets:
            with suppress(OSError):
                while one.recv(2_048):
                    counts[1] += 1
            with suppress(OSError):
                one.sendto(_opening(rng) if opening else b"x", target.address)
                counts[0] += 1
        time.sleep(max(0.0, began + every_s - time.monotonic()))


_DRIPPING = 150
"""More than a relay has places."""


def _opening(rng: random.Random) -> bytes:
    ports = (rng.randrange(1 << 16), rng.randrange(1 << 16))
    return emit(Segment(*ports, rng.randrange(1 << 32), 0, SYN, bytes(24)), SYN_OPTIONS)


# What is attacked.


@contextmanager
def program(*command: str) -> Iterator[Address]:
    """Runs a command of `weir` that listens; yields where."""
    argv = [sys.executable, "-m", "weir", *command]
    null = subprocess.DEVNULL
    with subprocess.Popen(argv, stdout=null, stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stderr or ():
                if found := re.search(r"(?:listening on|relay:) ([\d.]+):(\d+)", line):
                    break
            else:
                raise RuntimeError(f"{command} does not listen")
            threading.Thread(target=process.communicate, daemon=True).start()
            yield found[1], int(found[2])
        finally:
            process.kill()


@contextmanager
def receiver() -> Iterator[Address]:
    """A `weir recv`."""
    with (
        tempfile.TemporaryDirectory(prefix="weir-flood-") as folder,
        program("recv", "--dir", folder, "--bind", "127.0.0.1:0") as address,
    ):
        yield address


@contextmanager
def known_receiver(addresses: int) -> Iterator[Target]:
    """A `weir recv` of which attackers have recorded a transfer."""
    with tempfile.TemporaryDirectory(prefix="weir-flood-") as folder, receiver() as address:
        yield known_target(Path(folder), address, addresses, _KNOWN_BYTES)


@contextmanager
def relay() -> Iterator[Address]:
    """A `weir relay` to a `weir recv`."""
    with (
        receiver() as (to, port),
        program("relay", "--listen", "127.0.0.1:0", "--to", f"{to}:{port}") as address,
    ):
        yield address


@contextmanager
def server() -> Iterator[Address]:
    """A `weir test --server` with a key."""
    with tempfile.TemporaryDirectory(prefix="weir-flood-") as folder:
        key = Path(folder) / "key"
        key.write_text(_KEY.hex(), encoding="ascii")
        key.chmod(0o600)
        options = ("--key-file", str(key), "--listen", "127.0.0.1:0")
        with program("test", "--server", *options) as address:
            yield address


# The honest users.


def send(address: Address) -> float:
    """Sends 1 kB; the time that it took."""
    with tempfile.TemporaryDirectory(prefix="weir-flood-") as folder:
        path = Path(folder) / "small"
        path.write_bytes(os.urandom(1_000))
        began = time.monotonic()
        try:
            sent = files.send([path], f"{address[0]}:{address[1]}", max_wait="20s")
        except files.FailedError as error:
            print(f"the honest transfer failed: {error}", file=sys.stderr)
            return float("inf")
        return float("inf") if sent.missing else time.monotonic() - began


def test(address: Address) -> float:
    """Tests the path for half a second; the time that it took."""
    order = Order("reno", "up", 1, 0.5, 0.1)
    began = time.monotonic()
    try:
        with Client(f"{address[0]}:{address[1]}", _KEY) as client:
            client.run(order, lambda _: None, lambda: False)
    except (WeirError, OSError) as error:
        print(f"the honest path test failed: {error}", file=sys.stderr)
        return float("inf")
    return time.monotonic() - began


User = Callable[[Address], float]

PLACES: dict[str, tuple[Callable[[], AbstractContextManager[Address]], Run, User]] = {
    "crumbs": (receiver, crumbs, send),
    "litterers": (receiver, litterers, send),
    "idle path tests": (server, idle_clients, test),
    "drips through a relay": (relay, drips, send),
    "openings through a relay": (relay, partial(drips, every_s=2.5, opening=True), send),
}
"""Those that take places as cheaply as they can: what is attacked, by whom, and an honest user."""
UNANSWERED = {*UNANSWERED_KINDS, "drips through a relay"}
"""A relay takes every datagram, and passes it on to a receiver that answers none of one byte."""
ATTACKS = (*KINDS, *PLACES)


def measure(
    attack: str, addresses: int, begins_s: float = 8.0, tries: int = _TRIES, apart_s: float = 1.0
) -> Wait:
    """Attacks, and measures how long honest users wait from `begins_s` later on."""
    by, of = (_by_kind, attack) if attack in KINDS else (_by_place, attack)
    with by(of, addresses) as (address, user, so_far):
        began = time.monotonic()
        time.sleep(begins_s)
        times = []
        for _ in range(tries):
            times.append(user(address))
            time.sleep(apart_s)
        done, seconds = so_far(), time.monotonic() - began
    steps, heard, turned_away = (of[attack] for of in (done.steps, done.heard, done.turned_away))
    faults = tuple(done.faults(UNANSWERED))
    return Wait(attack, addresses, tuple(times), steps / seconds, heard, turned_away, faults)


Attacked = Iterator[tuple[Address, User, Callable[[], Attack]]]


@contextmanager
def _by_kind(kind: str, addresses: int) -> Attacked:
    with (
        known_receiver(addresses) as target,
        attackers(target, [kind], _STEPS_PER_S, processes=1) as so_far,
    ):
        yield target.address, send, so_far


@contextmanager
def _by_place(attack: str, addresses: int) -> Attacked:
    attacked, run, user = PLACES[attack]
    spawn = multiprocessing.get_context("spawn")
    with attacked() as address:
        counts: Counts = spawn.Array("q", 3)
        target = Target(address, addresses=addresses)
        work = spawn.Process(target=run, args=(target, counts), daemon=True)
        work.start()
        try:
            yield address, user, lambda: Attack(*({attack: counts[n]} for n in range(3)))
            if not work.is_alive():
                raise RuntimeError(f"the attackers of '{attack}' have ended")
        finally:
            work.kill()
            work.join()
