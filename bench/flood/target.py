"""What is attacked, what attackers know of it, and what it answers them."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from bench.flood import frames
from bench.flood.segments import Address, Connection

NETWORKS = 40
"""Attackers have an address in each of this many networks, unless another number is given."""


def host(number: int, addresses: int) -> str:
    """The address of an attacker: one of a number, each of a network of its own."""
    number %= addresses
    return f"127.{10 + number // 250}.{1 + number % 250}.9"


@dataclass(frozen=True, slots=True)
class Target:
    """A receiver, and what attackers know of it."""

    address: Address
    recorded: tuple[bytes, ...] = ()
    """Datagrams of an honest transfer."""
    known_hash: bytes = bytes(32)
    known_size: int = 0
    """Of a file that the receiver has."""
    addresses: int = NETWORKS
    """How many the attackers have."""
    steps: Counter[str] = field(default_factory=Counter)
    """By kind of attacker: its steps,"""
    heard: Counter[str] = field(default_factory=Counter)
    """how often the receiver has answered as it does to senders in form,"""
    turned_away: Counter[str] = field(default_factory=Counter)
    """and how often it has turned one away because of its form."""

    def __post_init__(self) -> None:
        """Refuses a record of senders that speak another version: they would be refused too."""
        if others := frames.spoken(self.recorded) - {frames.VERSION}:
            raise RuntimeError(f"honest senders speak version {others}, attackers {frames.VERSION}")

    def host(self, rng: random.Random) -> str:
        """An address of an attacker."""
        return host(rng.randrange(self.addresses), self.addresses)

    def hear(self, kind: str, connection: Connection, wanted: frozenset[int] | None) -> None:
        """Counts the receiver's first answer on a connection once, if there is one yet.

        Where no answer is `wanted`, the connection is all that the receiver grants.
        """
        answer = connection.first_answer
        if connection.is_counted or (not answer and (wanted or not connection.is_admitted)):
            return
        connection.is_counted = True
        if frames.is_refusal(answer):
            self.turned_away[kind] += 1
        # Others say that there is no space or no memory now, which is not a matter of form.
        elif not wanted or answer[0] in wanted:
            self.heard[kind] += 1
