"""What the slides print, and what is odd about it: part of the package as data."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Index:
    """One slide of the index comparison; values by protocol."""

    hops: int
    throughput: Mapping[str, float]
    retransmissions: Mapping[str, float]
    fairness: Mapping[str, float]
    note: str
    is_ambiguous: bool


@dataclass(frozen=True, slots=True)
class Cross:
    """Two flows on the arms of a cross; values in the order of `pair`."""

    hops: int
    pair: tuple[str, str]
    throughput: tuple[float, float]
    delay: tuple[float, float]
    aggregate: float
    fairness: float
    note: str


@dataclass(frozen=True, slots=True)
class Printed:
    """All that is printed as a number."""

    title: str
    published: str
    claimed_gain: tuple[float, float]
    """Throughput over NewReno's, from and to, as the slides conclude."""
    slow_start_share: float
    """Of a connection's time, at most."""
    indices: tuple[Index, ...]
    crosses: tuple[Cross, ...]

    def ranges(self, protocol: str, reference: str) -> dict[str, tuple[float, float]]:
        """The lowest and highest ratio of a protocol to a reference in the index comparisons."""
        sides = {
            "throughput": [i.throughput[protocol] / i.throughput[reference] for i in self.indices],
            "retransmissions": [
                i.retransmissions[protocol] / i.retransmissions[reference] for i in self.indices
            ],
        }
        return {name: (min(values), max(values)) for name, values in sides.items()}

    def index(self, hops: int) -> Index | None:
        """The index comparison of a chain of `hops` hops."""
        return next((own for own in self.indices if own.hops == hops), None)

    def cross(self, hops: int, pair: tuple[str, str]) -> Cross | None:
        """The row of a pair on a cross of `hops` hops."""
        return next((own for own in self.crosses if (own.hops, own.pair) == (hops, pair)), None)


@cache
def printed() -> Printed:
    """The tables of the slides."""
    path = files("weir.studies") / "data" / "muzha.toml"
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    about = data["source"]
    low, high = about["claimed_gain"]
    return Printed(
        about["title"],
        about["published"],
        (low, high),
        about["slow_start_share"],
        tuple(
            Index(
                row["hops"],
                row["throughput"],
                row["retransmissions"],
                row["fairness"],
                row.get("note", ""),
                row.get("ambiguous", False),
            )
            for row in data["index"]
        ),
        tuple(
            Cross(
                row["hops"],
                (row["pair"][0], row["pair"][1]),
                (row["throughput"][0], row["throughput"][1]),
                (row["delay"][0], row["delay"][1]),
                row["aggregate"],
                row["fairness"],
                row.get("note", ""),
            )
            for row in data["cross"]
        ),
    )
