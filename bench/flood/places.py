"""Unknown peers that take places: how long honest users wait next to them.

`weir recv`, `weir test --server` and `weir relay` have a limited number of places. Unknown peers
from 1, 40 or 1,000 addresses, each of a network of its own, take as many as they get, keep them as
cheaply as they can, and come back when they lose them. Meanwhile a file of 1 kB is sent again and
again, or a path is tested for half a second.
"""

from __future__ import annotations

import itertools
import multiprocessing
import multiprocessing.sharedctypes
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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from bench.flood.attackers import WELCOME, Target, beginning
from bench.flood.segments import Address, Connection
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
_ASKED_EVERY = 100
"""One in this many connections waits for its answer."""
Counts: TypeAlias = "multiprocessing.sharedctypes.SynchronizedArray[int]"
"""How often attackers were heard, and turned away because of their form."""


@dataclass(frozen=True, slots=True)
class Wait:
    """How long an honest user waited during an attack."""

    attack: str
    addresses: int
    times_s: tuple[float, ...]
    """Each infinite if it failed."""
    heard: int
    """How often an attacker got an answer that one in form gets, or a connection,"""
    turned_away: int
    """and how often it was turned away because of its form."""

    @property
    def longest_s(self) -> float:
        """The longest time."""
        return max(self.times_s)

    @property
    def attacks(self) -> bool:
        """Whether attackers were in form: if not, nothing was measured."""
        return self.heard > self.turned_away


def host(number: int, addresses: int) -> str:
    """The address of an attacker: one of a number, each of a network of its own."""
    number %= addresses
    return f"127.{10 + number // 250}.{1 + number % 250}.9"


# The attacks: each runs in a process of its own until it is killed, and counts what it hears.


def crumbs(address: Address, addresses: int, counts: Counts) -> None:
    """Connections that announce a file and bring one new byte every 2.5 s."""
    rng, target = random.Random(1), Target(address, (), b"", 0)  # noqa: S311
    kept: list[tuple[Connection, int]] = []
    while True:
        began = time.monotonic()
        for n in range(_CONNECTIONS):
            if n == len(kept):
                kept.append((_begun(rng, target, host(n, addresses)), 0))
                continue
            connection, brought = kept[n]
            connection.hear()
            if brought <= 1:
                target.hear("crumbs", connection, WELCOME)
                counts[:] = [target.heard["crumbs"], target.turned_away["crumbs"]]
            if connection.is_open:
                connection.say(len(beginning(rng, target)) + brought, b"x")
                kept[n] = connection, brought + 1
            else:
                connection.close()
                kept[n] = _begun(rng, target, host(n, addresses)), 0
        time.sleep(max(0.0, began + 2.5 - time.monotonic()))


def _begun(rng: random.Random, target: Target, source: str) -> Connection:
    connection = Connection(rng, target.address, source)
    if connection.is_open:
        connection.say(0, beginning(rng, target))
    return connection


def litterers(address: Address, addresses: int, counts: Counts) -> None:
    """Connections that begin a file with one byte and reset, as fast as they can."""
    rng, target = random.Random(1), Target(address, (), b"", 0)  # noqa: S311
    for n in itertools.count():
        connection = _begun(rng, target, host(n, addresses))
        if n % _ASKED_EVERY == 0 and connection.is_open:
            time.sleep(0.1)
            target.hear("litter", connection, WELCOME)
            counts[:] = [target.heard["litter"], target.turned_away["litter"]]
        connection.reset()
        connection.close()


def idle_clients(address: Address, addresses: int, counts: Counts) -> None:
    """TCP connections that say nothing, opened again when they are closed."""
    selector = selectors.DefaultSelector()
    opened = 0
    while True:
        while len(selector.get_map()) < _CONNECTIONS - 100:
            one = socket.socket()
            one.bind((host(opened, addresses), 0))
            one.settimeout(1.0)
            opened += 1
            with suppress(OSError):
                one.connect(address)
                one.setblocking(False)
                selector.register(one, selectors.EVENT_READ)
                counts[0] += 1
        for key, _ in selector.select(1.0):
            selector.unregister(key.fileobj)
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()


def drips(address: Address, addresses: int, counts: Counts) -> None:
    """UDP sockets that send one byte a second each."""
    sockets = []
    for n in range(max(150, addresses)):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind((host(n, addresses), 0))
        one.setblocking(False)
        sockets.append(one)
    while True:
        began = time.monotonic()
        for one in sockets:
            with suppress(OSError):
                one.sendto(b"x", address)
                counts[0] += 1
        time.sleep(max(0.0, began + 1.0 - time.monotonic()))


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
            sent = files.send([path], f"{address[0]}:{address[1]}")
        except files.FailedError:
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


ATTACKS = {
    "crumbs": (receiver, crumbs, send),
    "litter": (receiver, litterers, send),
    "idle path tests": (server, idle_clients, test),
    "drips through a relay": (relay, drips, send),
}


def measure(
    attack: str, addresses: int, begins_s: float = 8.0, tries: int = _TRIES, apart_s: float = 1.0
) -> Wait:
    """Attacks, and measures how long honest users wait from `begins_s` later on."""
    attacked, attackers, honest = ATTACKS[attack]
    spawn = multiprocessing.get_context("spawn")
    with attacked() as address:
        counts: Counts = spawn.Array("q", 2)
        work = spawn.Process(target=attackers, args=(address, addresses, counts), daemon=True)
        work.start()
        try:
            time.sleep(begins_s)
            times = []
            for _ in range(tries):
                times.append(honest(address))
                time.sleep(apart_s)
            if not work.is_alive():
                raise RuntimeError(f"the attackers of '{attack}' have ended")
        finally:
            work.kill()
            work.join()
    return Wait(attack, addresses, tuple(times), heard=counts[0], turned_away=counts[1])
