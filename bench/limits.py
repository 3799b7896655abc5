"""`weir read` next to tshark in scenarios with a configured limit: `python -m bench.limits`.

The twelve scenarios are those of `weir study limits`. Each runs twice: iperf3 over `weir link`,
captured by tshark at the sender, and in the simulator over two hops, captured between them. For
each capture the table has the limit with the largest share of the time, and whether all counts
equal those of tshark.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from bench import command
from weir import reading
from weir.base.errors import RunError, unknown
from weir.base.grid import Grid
from weir.cli import output, screen
from weir.experiments.captured import Keys
from weir.processes import netns
from weir.running.runner import execute
from weir.scenario.source import Source
from weir.studies import limits
from weir.studies.limits.cases import CASES, Case

Row = dict[str, Any]

_COLUMNS = ("scenario", "place", "configured", "found", "counts")
_SIZE = "full"
_PATH = {"topology.rate": "--rate", "topology.rtt": "--rtt", "topology.queue": "--queue"}
_WAYS = {"topology.forward.": "--up", "topology.reverse.": "--down"}
_CONTROL = "cubic"
_FLAG = "tshark_"
_DATA_BYTES = 200_000
"""A flow has more data than this; iperf3's control connection has less."""
_MIDDLE = 1
"""Interface of the simulated capture: behind the first of two hops."""
_SCENARIO = """
[topology]
kind = "chain"
hops = 2
[topology.forward]
[[flow]]
stack = "{control}"
[measure]
duration = "{seconds}s"
"""


@dataclass(frozen=True)
class Program:
    """What makes iperf3 do what a flow of a scenario does."""

    options: str = ""
    """Of the client."""
    client: str = ""
    """Setting of the kernel at the client, as for sysctl."""
    server: str = ""


PROGRAMS: Mapping[str, Program] = {
    "small receive buffer": Program(server="net.ipv4.tcp_rmem=4096 40000 40000"),
    "messages": Program("-b 2M"),
    "small send buffer": Program(client="net.ipv4.tcp_wmem=4096 60000 60000"),
    "short transfer": Program("-n 1M"),
    "four flows": Program("-P 4"),
}
"""By the name of the scenario; the others run iperf3 as it is."""


@dataclass(frozen=True)
class Seen:
    """What was found in one capture."""

    found: str
    """The limit with the largest share of the time, the mean over the flows."""
    share: float
    """Of the time, from 0 to 1."""
    differing: Mapping[str, tuple[int, int]]
    """Counts that differ: those of `weir read`, and those of tshark."""
    counts: Mapping[str, int]
    """Those of tshark."""


def bench(
    only: Annotated[
        list[str] | None, typer.Option(help="Run this scenario only. Repeat it for further ones.")
    ] = None,
    seconds: Annotated[int, typer.Option(min=3, help="Duration of each flow.")] = 20,
    keep: Annotated[Path | None, typer.Option(help="Keep the captures in this folder.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compares limits and counts of `weir read` with what was configured, and with tshark."""
    lacking = netns.missing() or next(
        (f"there is no {name}" for name in ("iperf3", "tshark") if shutil.which(name) is None), None
    )
    cases = CASES[_SIZE]
    for name in only or ():
        if name not in cases:
            raise typer.BadParameter(f"--only: {unknown('scenario', name, cases)}")
    if lacking is not None:
        raise RunError(f"no link can be captured here: {lacking}")
    with TemporaryDirectory() as scratch:
        folder = keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        rows = list(_measured({name: cases[name] for name in only or cases}, seconds, folder))
    if json:
        output.print_json("bench-limits", rows)
    else:
        screen.show(_grid(rows).rich())
        screen.show(_summary(rows))


def _measured(cases: Mapping[str, Case], seconds: int, folder: Path) -> Iterator[Row]:
    """A row per scenario and place of the capture."""
    for name, case in cases.items():
        for place, capture in (("link", _of_link), ("hop", _of_middle)):
            output.note(f"{name}, {place}", quiet=not sys.stderr.isatty())
            seen = capture(name, case, seconds, folder)
            yield {"scenario": name, "place": place, "configured": case.limit, **asdict(seen)}


def _grid(rows: Sequence[Row]) -> Grid:
    cells = [
        (
            row["scenario"],
            row["place"],
            row["configured"],
            f"{row['found']} {row['share']:.0%}",
            _counts(row),
        )
        for row in rows
    ]
    return Grid("Limits and counts of captures", _COLUMNS, cells, names=2)


def _summary(rows: Sequence[Row]) -> str:
    named = Counter(row["place"] for row in rows if row["found"] == row["configured"])
    of = Counter(row["place"] for row in rows)
    equal = sum(not row["differing"] for row in rows)
    return (
        f"The configured limit has the largest share in {named['link']} of {of['link']} captures "
        f"of iperf3 over a link, and in {named['hop']} of {of['hop']} at a simulated middle hop. "
        f"All counts equal tshark's in {equal} of {len(rows)} captures."
    )


def _counts(row: Row) -> str:
    if row["differing"]:
        return ", ".join(f"{name} {a}, tshark {b}" for name, (a, b) in row["differing"].items())
    return f"{sum(row['counts'].values())} flags, equal"


def _of_link(name: str, case: Case, seconds: int, folder: Path) -> Seen:
    """Captured at the sender, while iperf3 runs over a link."""
    file = folder / f"{name.replace(' ', '-')}-link.pcapng"
    program = PROGRAMS.get(name, Program())
    bound = "" if "-n" in program.options else f"-t {seconds}"
    control = case.keys.get("flow.0.stack", _CONTROL)
    command = (
        f"{_setting(program.client)}"
        "device=$(ip -o route get $WEIR_LINK_HOST | sed 's/.* dev //; s/ .*//'); "
        f"tshark -Q -i $device -s 128 -w {shlex.quote(str(file))} 2>/dev/null & t=$!; "
        f"sleep 1.5; iperf3 -c $WEIR_LINK_HOST -C {control} {bound} {program.options} "
        ">/dev/null; r=$?; "
        "sleep 0.5; kill -INT $t; wait $t; exit $r"
    )
    server = f"{_setting(program.server)}exec iperf3 -s -1"
    words = [sys.executable, "-m", "weir", "link", "-q", *link_words(case.keys)]
    words += ["--server", server, "--ready", "port:5201", "--", "sh", "-c", command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"{name}: weir link: {done.stderr.strip() or done.returncode}")
    output.note(done.stderr.strip(), quiet=not done.stderr)  # a link that was late
    rows = [row for row in _rows(file) if row["sent_bytes"] > _DATA_BYTES]
    return _seen(rows, case, file)


def _of_middle(name: str, case: Case, seconds: int, folder: Path) -> Seen:
    """Captured behind the first of two simulated hops."""
    text = _SCENARIO.format(seconds=seconds, control=_CONTROL)
    label = f"{name.replace(' ', '-')}-hop"
    both = folder / f"{label}.pcapng"
    execute(Source(text, "limits", tuple(case.keys.items())).at({}), 1, pcap=both)
    file = folder / f"{label}-middle.pcapng"
    words = ["-r", str(both), "-Y", f"frame.interface_id == {_MIDDLE}", "-w", str(file)]
    _tshark(words)
    return _seen([row for row in _rows(file) if row["limit"] is not None], case, file)


def link_words(keys: Keys) -> list[str]:
    """The options of `weir link` for the path of a scenario."""
    words = [word for key, option in _PATH.items() for word in (option, keys[key])]
    for prefix, option in _WAYS.items():
        own = {key: value for key, value in keys.items() if key.startswith(prefix)}
        parts = [part for key, value in own.items() for part in _parts(key[len(prefix) :], value)]
        words += [option, ",".join(parts)] if parts else []
    return words


def _parts(key: str, value: str) -> Iterator[str]:
    """`key=value` for a value, or one for each value of a table in TOML."""
    if not value.startswith("{"):
        yield f"{key}={value}"
        return
    for name, inner in tomllib.loads(f"table = {value}")["table"].items():
        yield f"{key}.{name}={inner}"


def _setting(text: str) -> str:
    """A command that makes a setting of the kernel for this end of the link."""
    return f"sysctl -qw {shlex.quote(text)}; " if text else ""


def _rows(file: Path) -> list[dict[str, Any]]:
    return reading.read([file]).connections.rows(named=True)


def _seen(rows: Sequence[dict[str, Any]], case: Case, file: Path) -> Seen:
    """The limit of these connections, and the counts of the whole file."""
    mean = limits.mean_shares(rows, case.limit)
    if not mean:
        raise RunError(f"{file}: no connection with data")
    found = max(mean, key=mean.__getitem__)
    own = own_counts(_rows(file))
    theirs = tshark_counts(file, list(own))
    differing = {name: (own[name], n) for name, n in theirs.items() if own[name] != n}
    return Seen(found, mean[found], differing, theirs)


def own_counts(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """How many packets have each flag of tshark, as `weir read` counts them."""
    flags = [name for name in rows[0] if name.startswith(_FLAG)]
    return {flag.removeprefix(_FLAG): sum(row[flag] for row in rows) for flag in flags}


def tshark_counts(file: Path, flags: Sequence[str]) -> dict[str, int]:
    """How many packets have each of these flags, as tshark itself counts them."""
    fields = [word for flag in flags for word in ("-e", f"tcp.analysis.{flag}")]
    lines = _tshark(["-r", str(file), "-T", "fields", *fields]).splitlines()
    packets = [line.split("\t") for line in lines]
    return {flag: sum(packet[n] != "" for packet in packets) for n, flag in enumerate(flags)}


def tshark_streams(file: Path) -> list[int]:
    """How many packets each connection of a capture has, as tshark counts them."""
    lines = _tshark(["-r", str(file), "-T", "fields", "-e", "tcp.stream"]).split()
    return list(Counter(lines).values())


def _tshark(words: Sequence[str]) -> str:
    """What tshark prints. Port 6000 is no X11 here."""
    command = ["tshark", "--disable-protocol", "x11", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"tshark: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    command.run(bench, "bench.limits")
