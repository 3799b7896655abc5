"""From the runs of radio scenarios to rows: ours, the reference, and whether it holds.

A row has the members of those compared with a kernel (`weir.recordings.judge`), and `series` and
`at`, which say where it belongs in the picture of its group. The 95 % interval is that over seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from weir.radio_validation.scenes import EXACT, GROUPS, Scene
from weir.recordings.judge import Pair, Row, Tolerance, Verdict, interval, known, skipped
from weir.results.results import Results
from weir.statistics.intervals import mean_interval, mean_ratio, rounded

GOODPUT = "goodput_kbps"
SHARE = "share_of_one_hop"
"""Goodput over that of one hop with the same random numbers."""

_EXCHANGE = ("rts", "cts", "data", "ack")


def rows(scenes: Sequence[Scene], results: Results) -> list[Row]:
    """Every row of these scenes, in their order."""
    found: list[Row] = []
    for scene in scenes:
        if _runs(results, scene.name).is_empty():
            found.append({**skipped(scene.name, "the simulation failed"), **_place(scene)})
        elif scene.group == "airtimes":
            found += _airtimes(scene, results)
        else:
            found += _goodputs(scene, results)
    return found


def score(found: Sequence[Row]) -> dict[str, dict[str, int]]:
    """By group, and for all together: how many rows were judged, hold, and are inconclusive."""
    totals = {}
    for group in (*GROUPS, "all"):
        verdicts = [
            row["verdict"] for row in found if row["verdict"] and group in (row["kind"], "all")
        ]
        if verdicts:
            held, inconclusive = verdicts.count("holds"), verdicts.count("inconclusive")
            totals[group] = {"held": held, "inconclusive": inconclusive, "judged": len(verdicts)}
    return totals


def _airtimes(scene: Scene, results: Results) -> Iterator[Row]:
    """How long frames were on the air, all of a kind together, and whole exchanges."""
    run = _runs(results, scene.name)["run"][0]
    frames = results.scan("frames").filter(pl.col("run") == run).sort("t_s").collect()
    for metric, times in _frame_times(frames).items():
        expected = scene.known[metric]
        farthest = max(times, key=lambda time: abs(time - expected))
        note = f"the farthest of {len(times)}"
        yield _row(scene, metric, [farthest], expected, EXACT, note)


def _frame_times(frames: pl.DataFrame) -> dict[str, list[float]]:
    """Microseconds. The first data frame of each side opens the connection, and is left out."""
    timed = frames.with_columns(us=(pl.col("end_s") - pl.col("t_s")) * 1e6)
    found = {
        f"{kind}_us": timed.filter(kind=kind)["us"].to_list() for kind in ("rts", "cts", "ack")
    }
    for node, metric in ((0, "data_us"), (1, "tcp_ack_us")):
        found[metric] = timed.filter(kind="data", node=node)["us"].to_list()[1:]
    found["exchange_us"] = _exchanges(frames)[1:]
    return found


def _exchanges(frames: pl.DataFrame) -> list[float]:
    """From the beginning of an RTS of node 0 to the end of the acknowledgement."""
    kinds, nodes = frames["kind"].to_list(), frames["node"].to_list()
    begins, ends = frames["t_s"].to_list(), frames["end_s"].to_list()
    return [
        (ends[i + 3] - begins[i]) * 1e6
        for i in range(len(kinds) - 3)
        if nodes[i] == 0 and tuple(kinds[i : i + 4]) == _EXCHANGE
    ]


def _goodputs(scene: Scene, results: Results) -> Iterator[Row]:
    own = _kbps(scene, results, scene.name)
    if scene.base is None:
        yield _row(scene, GOODPUT, own, scene.expected, scene.tolerance, scene.note)
        return
    one = _kbps(scene, results, scene.base)
    paired = [a / b if a is not None and b else None for a, b in zip(own, one, strict=False)]
    yield _row(scene, SHARE, paired, scene.expected, scene.tolerance, scene.note)
    yield _row(scene, GOODPUT, own, scene.published_kbps, None, "")


def _kbps(scene: Scene, results: Results, label: str) -> list[float | None]:
    """Goodput of all flows of each run."""
    return [
        None if value is None else value * 1e3 * scene.scale
        for value in _runs(results, label)["goodput_mbps"]
    ]


def _runs(results: Results, label: str) -> pl.DataFrame:
    return results.runs.filter(label=label, status="ok").sort("repeat")


def _place(scene: Scene) -> Row:
    return {"kind": scene.group, "series": scene.series, "at": scene.at}


def _row(
    scene: Scene,
    metric: str,
    values: Sequence[float | None],
    expected: float | None,
    tolerance: Tolerance | None,
    note: str,
) -> Row:
    own = mean_interval(values)
    ratio = mean_ratio(values, [expected] * len(values))
    verdict: Verdict | None = None
    if tolerance is not None and expected is not None:
        verdict = "differs"
        if own.mean is not None:
            verdict = tolerance.verdict(Pair(known(values), [expected], own.mean, expected, ratio))
    seeds = f"mean of {own.n} seeds" if own.n > 1 else ""
    return {
        "case": scene.name,
        "flow": None,
        "metric": metric,
        **_place(scene),
        "ours": rounded(own.mean),
        "reference": rounded(expected),
        "ratio": rounded(ratio.mean),
        "verdict": verdict,
        "holds": {"holds": True, "differs": False}.get(verdict or ""),
        "tolerance": _tolerance_text(tolerance) if verdict else None,
        "ours_interval": interval(own),
        "reference_interval": None,
        "ratio_interval": interval(ratio),
        "note": "; ".join(filter(None, [seeds, note])),
    }


def _tolerance_text(tolerance: Tolerance | None) -> str:
    return "exact" if tolerance == EXACT else str(tolerance)
