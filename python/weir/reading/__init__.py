"""Packet captures: their TCP connections, measured, and what limited them.

>>> import weir.reading
>>> weir.reading.COLUMNS["limited_path_capacity"]
'path capacity'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from weir import _native
from weir.disk import write_errors
from weir.errors import InputError

LIMITS = (
    "application",
    "receiver-window",
    "send-buffer",
    "slow-start",
    "congestion",
    "random-loss",
    "policer",
    "path-capacity",
    "unknown",
)
"""What can limit a sender, in the order of tables."""

COLUMNS = {f"limited_{name.replace('-', '_')}": name.replace("-", " ") for name in LIMITS}
"""The column of each limit's share, and the words for it."""

TABLES = ("connections", "slices", "points")
"""Names of the tables, and of their files."""


@dataclass(frozen=True)
class Captures:
    """What captures contain."""

    connections: pl.DataFrame
    """One row per connection, the one with the most data first."""
    slices: pl.DataFrame
    """The time of the 32 largest connections, in slices."""
    points: pl.DataFrame
    """Their segments and acknowledgements, thinned."""
    packets: pl.DataFrame
    """Their data packets in the order of sending, up to 65,536 each; empty unless wanted."""
    counts: dict[str, int]
    """Packets by kind."""
    warnings: tuple[str, ...]
    """What was not read, and why."""

    def write(self, folder: Path) -> None:
        """Writes each table into `folder` as Parquet.

        Raises:
            StoreError: it cannot be written.
        """
        with write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            for name in TABLES:
                getattr(self, name).write_parquet(folder / f"{name}.parquet")


def read(paths: Sequence[str | Path], *, packets: bool = False) -> Captures:
    """Reads captures: pcap or pcapng, also compressed by gzip or zstd.

    With `packets` it also returns the data packets of the largest connections.

    Raises:
        InputError: a file is no capture, or cannot be read.
    """
    files = [Path(path) for path in paths]
    for file in files:
        if not file.is_file():
            other = "is no regular file" if file.exists() else "is not there"
            what = "is a folder" if file.is_dir() else other
            raise InputError(f"{file}: {what}; a capture is a file in pcap or pcapng")
    try:
        found = _native.read_captures(files, packets=packets)
    except ValueError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror or error}") from None
    counts = dict(found.counts)
    tables = {name: pl.DataFrame(found.table(name)) for name in (*TABLES, "packets")}
    warnings = (*found.warnings, *_warnings(counts))
    return Captures(**tables, counts=counts, warnings=warnings)


def limits(row: dict[str, object]) -> dict[str, float]:
    """The shares of a connection's time by limit, the largest first, without those below 0.5 %."""
    shares = {words: row[column] for column, words in COLUMNS.items()}
    known = {words: share for words, share in shares.items() if isinstance(share, float)}
    shown = {words: share for words, share in known.items() if share >= _LEAST_SHARE}
    return dict(sorted(shown.items(), key=lambda one: -one[1]))


def candidates(row: dict[str, object]) -> dict[str, float]:
    """The error of each congestion control whose window was compared, the least first."""
    text = row["controller_candidates"]
    if not isinstance(text, str):
        return {}
    pairs = [part.split() for part in text.split(", ")]
    return {name: float(error) for name, error in pairs}


def controller(row: dict[str, object]) -> str:
    """A sentence about the congestion control of a connection."""
    name, note = row["controller"], row["controller_note"]
    if name is None:
        return "The congestion control was not looked for: only in the 32 largest connections."
    if note is not None:
        return f"The congestion control is unknown: {note}."
    best = min(candidates(row).values())
    return (
        f"Congestion control: {name}. Its window differs by {best:.1%} from what was in flight; "
        f"confidence {row['controller_confidence']:.2f}."
    )


def _warnings(counts: dict[str, int]) -> list[str]:
    texts = {
        "dropped_packets": "{} packets were dropped by the capturing system; losses may be its own",
        "damaged_packets": "{} packets are marked as damaged, and are not analysed",
        "unknown_link_packets": "{} packets have a link type that is not read",
        "evicted_connections": "{} connections were ended early: too many were open",
        "dropped_connections": "{} small connections are not listed",
    }
    return [text.format(counts[name]) for name, text in texts.items() if counts[name]]


_LEAST_SHARE = 0.005
