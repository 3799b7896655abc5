"""Traces of Linux's TCP as a folder of files: `summary.json`, `CASE.csv`, `packets-CASE.csv.gz`.

docs/validation describes the format. A case that was recorded several times because the kernel
drew random numbers has the names `CASE`, `CASE-s2`, `CASE-s3`, …; they are one reference here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from weir.base import bounded
from weir.base.errors import InputError

SUMMARY = "summary.json"

KEYS = {
    "steady_goodput_mbps": "steady_goodput_mbps",
    "mean_cwnd_segments": "mean_cwnd",
    "peak_cwnd_segments": "peak_cwnd",
    "mean_srtt_ms": "mean_srtt_ms",
    "retransmits": "retrans",
    "sawtooth_period_s": "sawtooth_period_s",
}
"""Our name of each metric of a flow, and its key in the summary."""

OVERLAP = "overlap_goodput_mbps"
"""Goodput while all flows were running; only where there are several."""

REQUEST = "request_latency_ms_p50"
"""The median time of a request; only of flows that ask."""

COMPLETION = "fct_s"
"""When the last byte of a file had arrived; only of flows that send one."""

_MAY_BE_MISSING = {"sawtooth_period_s"}
_NAME = re.compile(r"[A-Za-z0-9_.+-]{1,100}")
_MOST_FLOWS = 64
"""Of a case."""
_LONGEST_S = 86_400.0
_MOST_ROWS = 100_000
"""Of a series: almost three hours."""
_REPEAT = re.compile(r"(?P<base>.+)-s\d+")
_SERIES = {"cwnd": "cwnd_segments", "srtt_ms": "srtt_ms", "gput": "goodput_mbps"}

Values = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow of a case."""

    cc: str
    start_s: float
    duration_s: float

    @property
    def end_s(self) -> float:
        """When it was stopped."""
        return self.start_s + self.duration_s


@dataclass(frozen=True)
class Reference:
    """What the kernel did in one case: `recordings[repeat][flow]` are its metrics."""

    name: str
    params: Mapping[str, str]
    kernel: str
    flows: tuple[Flow, ...]
    recordings: tuple[tuple[Values, ...], ...]
    series: pl.DataFrame | None
    """Rows every 100 ms: `flow`, `t_s`, `cwnd_segments`, `srtt_ms`, `goodput_mbps`."""
    windows: tuple[int, ...] | None
    """The congestion window in segments before each acknowledgement of the first seconds."""


@dataclass(frozen=True)
class Truth:
    """A folder of traces: what can be compared, and why the rest cannot."""

    references: tuple[Reference, ...]
    unusable: Mapping[str, str]


def read(directory: str | Path) -> Truth:
    """Reads a folder of traces.

    Raises:
        InputError: it is none, or a file in it is not what it should be.
    """
    folder = Path(directory)
    cases = _summary(folder)
    unusable = {
        name: f"the recording failed: {_one_line(case['error'])}"
        for name, case in cases.items()
        if "error" in case
    }
    repeats: dict[str, list[str]] = {}
    for name in cases.keys() - unusable.keys():
        repeats.setdefault(_base(name, cases), []).append(name)
    references = [
        _reference(folder, base, sorted(repeats[base]), cases) for base in sorted(repeats)
    ]
    for path in sorted(folder.glob("packets-*.csv.gz")):
        name = path.name.removeprefix("packets-").removesuffix(".csv.gz")
        if name not in cases:
            unusable[name] = f"{SUMMARY} does not say how {path.name} was recorded"
    return Truth(tuple(references), unusable)


def _base(name: str, cases: Mapping[str, Any]) -> str:
    """The case that `name` repeats, itself if none."""
    match = _REPEAT.fullmatch(name)
    return (
        match["base"] if match and "error" not in cases.get(match["base"], {"error": ""}) else name
    )


def _summary(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / SUMMARY
    if not path.exists():
        raise InputError(f"{folder}: no traces here (a folder of traces has a {SUMMARY})")
    cases = bounded.read_json(path)
    if not isinstance(cases, dict) or not cases:
        raise InputError(f"{path}: an object with one member per case is needed")
    for name, case in cases.items():
        if not _NAME.fullmatch(name):  # names of files are made of it
            allowed = "a name has 1 to 100 letters, digits, -, _, . and +"
            raise InputError(f"{path}: case {name!a}: {allowed}")
        if not isinstance(case, dict) or not isinstance(case.get("params"), dict):
            raise InputError(f"{path}: case {name}: an object with params is needed")
        if "error" not in case and not _are_flows(case.get("flows")):
            allowed = f"a list of 1 to {_MOST_FLOWS} objects is needed"
            raise InputError(f"{path}: case {name}: flows: {allowed}")
    return cases


def _are_flows(flows: object) -> bool:
    is_list = isinstance(flows, list) and 1 <= len(flows) <= _MOST_FLOWS
    return is_list and all(isinstance(flow, dict) for flow in flows)  # type: ignore[attr-defined]


def _reference(
    folder: Path, name: str, repeats: list[str], cases: Mapping[str, dict[str, Any]]
) -> Reference:
    case = cases[name]
    flows = tuple(_flow(folder, name, index, flow) for index, flow in enumerate(case["flows"]))
    for repeat in repeats:
        if len(cases[repeat]["flows"]) != len(flows):
            raise InputError(f"{folder / SUMMARY}: case {repeat}: {len(flows)} flows are needed")
    return Reference(
        name,
        {str(key): str(value) for key, value in case["params"].items()},
        str(case.get("kernel") or "unknown"),
        flows,
        tuple(_recording(folder, repeat, cases[repeat]) for repeat in repeats),
        _series(folder / f"{name}.csv", len(flows)),
        _windows(folder / f"packets-{name}.csv.gz"),
    )


def _flow(folder: Path, name: str, index: int, flow: Mapping[str, Any]) -> Flow:
    place = f"{folder / SUMMARY}: case {name}: flow {index}"
    if not isinstance(flow.get("cc"), str):
        raise InputError(f"{place}: cc: the name of an algorithm is needed")
    start, duration = (_number(place, flow, key) for key in ("start", "dur"))
    if (
        start is None
        or duration is None
        or start < 0
        or duration <= 0
        or start + duration > _LONGEST_S
    ):
        raise InputError(f"{place}: start and dur: times in seconds are needed, up to a day")
    return Flow(flow["cc"], start, duration)


def _recording(folder: Path, name: str, case: Mapping[str, Any]) -> tuple[Values, ...]:
    joint = case.get("overlap") if len(case["flows"]) > 1 else None
    overlap = joint.get("goodput_mbps") if isinstance(joint, dict) else None
    found = []
    for index, flow in enumerate(case["flows"]):
        place = f"{folder / SUMMARY}: case {name}: flow {index}"
        values = {ours: _number(place, flow, key) for ours, key in KEYS.items()}
        if isinstance(overlap, list) and index < len(overlap):
            values[OVERLAP] = _number(place, {OVERLAP: overlap[index]}, OVERLAP)
        found.append(values)
    return tuple(found)


def _number(place: str, flow: Mapping[str, Any], key: str) -> float | None:
    value = flow.get(key)
    if value is None and key in _MAY_BE_MISSING:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else math.nan  # type: ignore[arg-type]
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{place}: {key}: not a finite number")
    return number


def _series(path: Path, flows: int) -> pl.DataFrame | None:
    if not path.exists():
        return None
    content = bounded.read_bytes(path)
    wanted = [f"{column}{flow}" for flow in range(flows) for column in _SERIES]
    try:
        rows = pl.read_csv(content, infer_schema=False, n_rows=_MOST_ROWS + 1)
        missing = [column for column in ("t", *wanted) if column not in rows.columns]
        if missing:
            raise InputError(f"{path}: column {missing[0]} is missing")
        numbers = rows.select(pl.col("t", *wanted).replace("", None).cast(pl.Float64))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise InputError(f"{path}: not a table of numbers with commas between them") from None
    if rows.height > _MOST_ROWS:
        raise InputError(f"{path}: more than {_MOST_ROWS} rows, the most of a series")
    parts = [
        numbers.select(
            pl.lit(flow, pl.UInt32).alias("flow"),
            pl.col("t").alias("t_s"),
            *(pl.col(f"{column}{flow}").alias(ours) for column, ours in _SERIES.items()),
        ).drop_nulls()
        for flow in range(flows)
    ]
    return pl.concat(parts)


def _windows(path: Path) -> tuple[int, ...] | None:
    if not path.exists():
        return None
    rows = [line.split(b",") for line in bounded.read_gzip(path).splitlines()]
    try:
        return tuple(int(row[2]) for row in rows if len(row) > 1 and row[1] == b"P")
    except (ValueError, IndexError):
        raise InputError(f"{path}: not a packet trace: rows t,P,cwnd are needed") from None


def _one_line(error: object) -> str:
    return " ".join(str(error).split())
