"""What an animation of a radio network shows: one run, its frames in a span of time.

Times are whole nanoseconds from the beginning of the span.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import polars as pl

from weir import _native
from weir.base.errors import InputError
from weir.base.options import Option
from weir.running import runner
from weir.scenario.source import Effective, Source

FROM, SPAN = "0s", "200ms"
"""Default span."""

MOST_FRAMES = 20_000
"""What a page carries: about 1 MB, and more than a reader looks at."""

_MOST_RECORDED = 1_000_000
_MOST_EVENTS = 100_000

_NS = 1e9
_READ_M, _SENSE_RATIO = 250.0, 2.2
"""Up to where frames are read and sensed by default (`topology.radio.range`, `.sense_range`)."""

KINDS = ("rts", "cts", "data", "ack", "broadcast")
"""Kinds of frames by number."""
FRAME = ("start", "end", "node", "to", "kind", "flow", "seq", "reverse", "mark", "readers")
"""What the numbers of a frame mean."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Which run of a scenario, and which part of it."""

    source: Source
    seed: Annotated[
        int | None,
        Option("Random seed of the run.", default_text="the scenario's own", min=0),
    ] = None
    start: Annotated[
        str, Option("With {save}: start time within the run.", metavar="TIME", flag="--from")
    ] = FROM
    span: Annotated[str, Option("With {save}: duration to show.", metavar="TIME", flag="--for")] = (
        SPAN
    )

    def command(self, name: str) -> str:
        """The command line that makes the same page, of a scenario called `name`."""
        sets = [
            word for key, value in self.source.overrides for word in ("--set", f"{key}={value}")
        ]
        seed = [] if self.seed is None else ["--seed", str(self.seed)]
        words = ["weir", "ui", self.source.origin, *sets, *seed, "--save", f"{name}.html"]
        return shlex.join([*words, "--from", self.start, "--for", self.span])


@dataclass(frozen=True)
class Animation:
    """A page's title, and the document that its script plays."""

    title: str
    description: str
    command: str
    data: Mapping[str, Any]

    @property
    def frames(self) -> int:
        """How many frames it shows."""
        return len(self.data["frames"])


def animation(wish: Excerpt) -> Animation:
    """Runs a scenario in the simulator, and takes what an animation shows.

    Raises:
        InputError: there is no radio, nothing is sent in the span, or too much.
        ScenarioError: the scenario is not valid.
    """
    whole = wish.source.at({})
    if whole.fields["topology"]["kind"] != "radio":
        raise InputError(
            f"{wish.source.origin}: only a radio network has frames to show; its topology is "
            f"'{whole.fields['topology']['kind']}', not 'radio'"
        )
    start, end = span_of(wish, whole)
    seed = whole.seed if wish.seed is None else wish.seed
    tables = runner.execute(_recorded(wish.source), seed)
    frames = _within(tables["frames"], start, end)
    _check(frames, tables["frames"], (start, end), wish)
    data = {
        "version": _native.version(),
        "seed": seed,
        "from_s": start,
        "span": round((end - start) * _NS),
        "kinds": KINDS,
        "frame": FRAME,
        **_network(whole, tables),
        "places": _places(tables["frames"], start),
        "frames": _rows(frames, start),
        "events": _events(tables["events"], start, end),
    }
    return Animation(whole.name, whole.description, wish.command(whole.name), data)


def span_of(wish: Excerpt, whole: Effective) -> tuple[float, float]:
    """The begin and the end of the span in seconds.

    Raises:
        InputError: a time is not valid, or the run ends before.
    """
    start, span = _seconds("--from", wish.start), _seconds("--for", wish.span)
    if span == 0:
        raise InputError(f"--for {wish.span}: above 0s is needed, as in --for {SPAN}")
    last = whole.fields["measure"]["duration"]
    end = min(start + span, _native.parse_quantity("time", last))
    if end <= start:
        raise InputError(f"--from {wish.start} --for {wish.span}: the run ends at {last}")
    return start, end


def _seconds(option: str, text: str) -> float:
    try:
        return _native.parse_quantity("time", text)
    except ValueError as error:
        raise InputError(f"{option} {text}: {error}") from None


def _recorded(source: Source) -> Effective:
    """The scenario with everything recorded."""
    more = {
        "measure.frames": str(_MOST_RECORDED),
        "measure.events": str(_MOST_EVENTS),
    }
    return source.at(more)


def _within(frames: pl.DataFrame, start: float, end: float) -> pl.DataFrame:
    """The frames of which any part is in the span, in the order in which they begin."""
    inside = (pl.col("end_s") > start) & (pl.col("t_s") < end)
    return frames.filter(inside).sort("t_s", "end_s", "node")


def _check(
    shown: pl.DataFrame, recorded: pl.DataFrame, span: tuple[float, float], wish: Excerpt
) -> None:
    start, end = span
    asked = f"--from {wish.start} --for {wish.span}"
    last = max(recorded["end_s"], default=0.0)
    if recorded.height >= _MOST_RECORDED and last < end:
        raise InputError(
            f"{asked}: only the first {_MOST_RECORDED} frames of a run are recorded, and the last "
            f"of these ends at {last:.6f} s; ask for less, or begin earlier"
        )
    if shown.height > MOST_FRAMES:
        fits = (float(shown["t_s"][MOST_FRAMES]) - start) * 1e3
        raise InputError(
            f"{asked}: {shown.height} frames, but a page holds {MOST_FRAMES}; "
            f"ask for less, as in --for {max(int(fits), 1)}ms"
        )
    if shown.is_empty():
        later = recorded.filter(pl.col("t_s") >= start)["t_s"]
        hint = "there is none in the whole run"
        if not later.is_empty():
            hint = f"the next one begins at {min(later):.6f} s"
        elif not recorded.is_empty():
            hint = f"the last one ends at {last:.6f} s"
        raise InputError(f"{asked}: no frame is sent then; {hint}")


def _network(whole: Effective, tables: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    """Where nodes are at first, what reaches how far, who talks to whom, and how routers mark."""
    radio = whole.fields["topology"]["radio"]
    read_m = _metres(radio.get("range"), _READ_M)
    columns = ("flow", "name", "stack", "from_node", "to_node")
    flows = tables["flows"].select(columns).rename({"from_node": "from", "to_node": "to"})
    feedback = radio.get("feedback") or {}
    return {
        "nodes": [list(place) for place in tables["nodes"].sort("node")["x_m", "y_m"].iter_rows()],
        "read_m": read_m,
        "sense_m": _metres(radio.get("sense_range"), read_m * _SENSE_RATIO),
        "flows": flows.to_dicts(),
        "levels": feedback.get("levels") if feedback.get("kind") == "drai" else None,
    }


def _metres(text: str | None, usual: float) -> float:
    match = re.fullmatch(r"([\d.]+)\s*(mm|m|km)", text or "")
    return float(match[1]) * {"mm": 1e-3, "m": 1.0, "km": 1e3}[match[2]] if match else usual


def _places(frames: pl.DataFrame, start: float) -> list[list[tuple[int, float, float]]] | None:
    """For each node that moves, when it was seen where; None if none does."""
    seen = frames.select("node", "t_s", "x_m", "y_m").sort("node", "t_s")
    moved = seen.group_by("node").agg(pl.struct("x_m", "y_m").n_unique())["x_m"]
    if moved.is_empty() or moved.max() == 1:
        return None
    changed = pl.struct("x_m", "y_m") != pl.struct("x_m", "y_m").shift().over("node")
    kept = seen.filter(changed.fill_null(value=True))
    places: list[list[tuple[int, float, float]]] = [[] for _ in range(1 + max(kept["node"]))]
    for node, t_s, x_m, y_m in kept.iter_rows():
        places[node].append((round((t_s - start) * _NS), x_m, y_m))
    return places


def _rows(frames: pl.DataFrame, start: float) -> list[list[int | None]]:
    """Each frame as the numbers that `FRAME` names."""
    nanoseconds = [
        ((pl.col(name) - start) * _NS).round().cast(pl.Int64) for name in ("t_s", "end_s")
    ]
    kinds = pl.col("kind").replace_strict({kind: at for at, kind in enumerate(KINDS)})
    is_reverse = (pl.col("direction") == "reverse").cast(pl.Int8)
    shown = frames.select(
        *nanoseconds, "node", "to", kinds, "flow", "seq", is_reverse, "mark", "readers"
    )
    return [list(row) for row in shown.iter_rows()]


def _events(events: pl.DataFrame, start: float, end: float) -> list[list[Any]]:
    """What happened to flows: when, to which, what, in words, and at which node if at one."""
    inside = pl.col("t_s").is_between(start, end) & pl.col("flow").is_not_null()
    found = events.filter(inside).sort("t_s", maintain_order=True)
    node = pl.col("detail").str.extract(r" at node (\d+)$").cast(pl.UInt32)
    time = ((pl.col("t_s") - start) * _NS).round().cast(pl.Int64)
    return [
        list(row)
        for row in found.select(time, "flow", "kind", "detail", node.alias("node")).iter_rows()
    ]
