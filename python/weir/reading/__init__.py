"""Packet captures, qlogs and results: their connections, measured, and what limited them.

>>> import weir.reading
>>> weir.reading.COLUMNS["limited_path_capacity"]
'path capacity'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from weir import _native
from weir.base.disk import write_errors
from weir.base.errors import InputError
from weir.reading import sources
from weir.reading.policed import with_policers
from weir.reading.sources import Source

LIMITS = (
    "application",
    "receiver-window",
    "send-buffer",
    "slow-start",
    "congestion",
    "random-loss",
    "policer",
    "path-capacity",
    "no-answer",
    "unknown",
)
"""What can limit a sender, in the order of tables."""

COLUMNS = {f"limited_{name.replace('-', '_')}": name.replace("-", " ") for name in LIMITS}
"""The column of each limit's share, and the words for it."""

TABLES = ("connections", "slices", "points")
"""Names of the tables, and of their files."""


@dataclass(frozen=True)
class Captures:
    """What captures and logs contain."""

    connections: pl.DataFrame
    """One row per connection, the one with the most data first."""
    slices: pl.DataFrame
    """The time of the 32 largest connections, in slices."""
    points: pl.DataFrame
    """Their segments and acknowledgements, thinned."""
    packets: pl.DataFrame
    """Their data packets in the order of sending, up to 65,536 each; empty unless wanted."""
    udp_flows: pl.DataFrame
    """One row per flow of UDP, the one with the most bytes first."""
    counts: dict[str, int]
    """Packets by kind."""
    unread: dict[str, int]
    """What is not read, by name, the most frequent first."""
    warnings: tuple[str, ...]
    """What was not read, and why."""

    def named(self, name: str) -> Captures:
        """The same of files that are called `name`; of several interfaces only the sender's."""
        frame = self.connections.with_columns(file=pl.lit(name))
        at_sender = frame.filter(pl.col("capture_point") == "sender")
        flows = self.udp_flows.with_columns(file=pl.lit(name))
        return replace(
            self,
            connections=frame if at_sender.is_empty() else at_sender,
            udp_flows=flows,
        )

    def renumbered(self, number: pl.Expr) -> Captures:
        """The same with other numbers of connections."""
        names = (*TABLES, "packets")
        kept = pl.col("connection").is_in(self.connections["connection"].implode())
        tables = {name: getattr(self, name).filter(kept) for name in names}
        number = number.cast(_NUMBER)
        return replace(self, **{n: t.with_columns(connection=number) for n, t in tables.items()})

    def write(self, folder: Path) -> None:
        """Writes each table into `folder` as Parquet.

        Raises:
            StoreError: it cannot be written.
        """
        with write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            for name in (*TABLES, "udp_flows"):
                getattr(self, name).write_parquet(folder / f"{name}.parquet")


def read(paths: Sequence[str | Path], *, packets: bool = False) -> Captures:
    """Reads captures, qlogs, also compressed by gzip, zstd or xz, and result directories.

    `-` is standard input. With `packets` it also returns the data packets of the largest
    connections of captures.

    Raises:
        InputError: a file is none of these, or cannot be read.
        RunError: a run of a result directory could not be repeated.
    """
    given = [Path(path) for path in paths]
    folders = [path for path in given if path.is_dir()]
    with sources.regular([path for path in given if path not in folders]) as files:
        parts = [_of_files(files, packets=packets)] if files or not folders else []
    for folder in folders:
        from weir.reading.results import recorded  # captures have no use for it

        for run in recorded(folder):
            part = _of_files(run.files, packets=packets).named(run.name)
            if run.policers:
                tables = with_policers(part.connections, part.slices, run.policers)
                part = replace(part, connections=tables[0], slices=tables[1])
            parts.append(part)
    return _joined(parts) if folders else parts[0]


def _of_files(files: Sequence[Path | Source], *, packets: bool) -> Captures:
    own = [file if isinstance(file, Source) else Source(str(file), file) for file in files]
    try:
        found = _native.read_captures([(one.name, one.file) for one in own], packets=packets)
    except ValueError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror or error}") from None
    counts = dict(found.counts)
    tables = {name: pl.DataFrame(found.table(name)) for name in (*TABLES, "packets", "udp_flows")}
    unread = dict(found.unread)
    broken = [one.warning for one in own if one.warning]
    is_empty = tables["connections"].is_empty() and tables["udp_flows"].is_empty()
    warnings = (
        *broken,
        *found.warnings,
        *_warnings(counts),
        *_unread_warnings(unread, found.short_packets, is_empty=is_empty),
    )
    return Captures(**tables, counts=counts, unread=unread, warnings=warnings)


def _joined(parts: Sequence[Captures]) -> Captures:
    """All parts as one, whose connections are numbered anew: the one with the most data first."""
    shifted = []
    start = 0
    for part in parts:
        shifted.append(part.renumbered(pl.col("connection") + start))
        start += part.connections.height
    tables = {
        name: pl.concat([getattr(part, name) for part in shifted]) for name in (*TABLES, "packets")
    }
    size = pl.max_horizontal("sent_bytes", "delivered_bytes")
    tables["connections"] = tables["connections"].sort(size, descending=True, maintain_order=True)
    flows = pl.concat([part.udp_flows for part in parts])
    flows = flows.sort(
        pl.col("client_bytes") + pl.col("server_bytes"), descending=True, maintain_order=True
    )
    tables["udp_flows"] = flows.with_columns(flow=pl.int_range(pl.len(), dtype=_NUMBER))
    old = tables["connections"]["connection"].to_list()
    counts = {name: sum(part.counts[name] for part in parts) for name in parts[0].counts}
    warnings = tuple(warning for part in parts for warning in part.warnings)
    unread: dict[str, int] = {}
    for part in parts:
        for name, count in part.unread.items():
            unread[name] = unread.get(name, 0) + count
    joined = Captures(**tables, counts=counts, unread=unread, warnings=warnings)
    places = range(len(old))
    return joined.renumbered(pl.col("connection").replace_strict(old, places, return_dtype=_NUMBER))


def limits(row: dict[str, object]) -> dict[str, float]:
    """The shares of a connection's time by limit, the largest first, without those below 0.5 %."""
    shares = {words: row[column] for column, words in COLUMNS.items()}
    known = {words: share for words, share in shares.items() if isinstance(share, float)}
    shown = {words: share for words, share in known.items() if share >= _LEAST_SHARE}
    return dict(sorted(shown.items(), key=lambda one: -one[1]))


def name_of(row: dict[str, object]) -> str:
    """The connection for people: its ends, the one that sent more data first."""
    ends = (str(row["client"]), str(row["server"]))
    arrow = " → ".join(ends if row["sender"] == "client" else reversed(ends))
    return f"{Path(str(row['file'])).name}: {arrow}" if row["source"] == "qlog" else arrow


def controller_cell(row: dict[str, object]) -> str:
    """The congestion control of a connection for a table, with the reason if it is unknown."""
    name, note = row["controller"], row["controller_note"]
    if name is None:
        return "–"
    return f"{name} ({note})" if note is not None else str(name)


def limits_cell(row: dict[str, object]) -> str:
    """What limited a connection, for a table; without shares the reason."""
    shares = ", ".join(f"{name} {share:.0%}" for name, share in limits(row).items())
    return shares or str(row["limit_note"] or "no data")


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
    if row["source"] == "qlog":
        return (
            "The log does not name the congestion control."
            if name is None
            else f"Congestion control: {name}, as the log reports."
        )
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
        "copies": "{} packets are copies of others, and count once",
        "clock_steps": "steps of the clock of the capture: {}; times continue where they were",
        "evicted_connections": "connections that were ended early, because too many were open: {}",
        "dropped_connections": "{} small connections are not listed",
        "dropped_udp_flows": "{} small flows of UDP are not listed",
    }
    # A few copies are usual: of packets to the own host, or of a bridge.
    least = {"copies": counts["packets"] * _FEW_COPIES}
    return [
        text.format(counts[name])
        for name, text in texts.items()
        if counts[name] > least.get(name, 0)
    ]


def _unread_warnings(unread: dict[str, int], short: int, *, is_empty: bool) -> Iterator[str]:
    """What a reader of the tables would miss."""
    if short:
        yield (
            f"too little was kept of {short} packets to see their TCP or UDP headers; capture with "
            "tcpdump -s 128"
        )
    if is_empty:
        listed = unread_text(unread) or "it has no packets"
        what = "not read" if unread else "nothing was read"
        yield f"no connection of TCP and no flow of UDP; {what}: {listed}"
        return
    for name in unread:
        if name.startswith(_WARNED):
            yield f"not read: {unread[name]} × {name}"


def unread_text(unread: dict[str, int]) -> str:
    """What is not read, with its counts."""
    return ", ".join(f"{count} × {name}" for name, count in unread.items())


_FEW_COPIES = 0.01
_WARNED = ("link type", "encrypted", "IP fragments", "packets without a time", "pcapng blocks")
"""What may have been part of a connection. The rest is other protocols, which tables name."""
_LEAST_SHARE = 0.005
_NUMBER = pl.UInt32
