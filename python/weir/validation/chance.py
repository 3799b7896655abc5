"""Whether a difference on a random path is one that microseconds or other random numbers make.

A guest's kernel takes up to some microseconds more or less than a simulated host. That decides
which comes first where an acknowledgement and the end of a transmission fall together: a packet
finds the queue full, or it does not (Floyd and Jacobson, "On traffic phase effects in
packet-switched gateways", 1992). So the flow is simulated again, with such small changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from weir.recordings.judge import Row, Rules, known
from weir.recordings.reduce import reduce
from weir.recordings.truth import Values
from weir.running.runner import default_jobs, execute
from weir.scenario.source import Source
from weir.statistics.intervals import rounded
from weir.validation.cases import Scene

TRIES = 40
"""Simulations of a row that differs."""
LATE_US = 2
"""A packet leaves up to this much later."""
RTT_US = 4
"""The round trip differs by up to this much, either way."""


def examined(
    scene: Scene, own: Source, rtt_us: int, rows: Sequence[Row], rules: Rules, seed: int
) -> list[Row]:
    """The rows; each that differs has the range of `TRIES` more simulations, in `chance`.

    All have small changes. Those of a controller that draws random numbers have other seeds too.
    `own` is the scene in the simulator, with a round trip of `rtt_us`. The verdicts stay.
    """
    if not any(row["verdict"] == "differs" for row in rows):
        return list(rows)
    with ThreadPoolExecutor(default_jobs()) as pool:
        tries = pool.map(lambda number: _once(scene, own, rtt_us, seed, number), range(TRIES))
        found = list(tries)
    return [_with(row, found, rules) if row["verdict"] == "differs" else row for row in rows]


def _with(row: Row, found: Sequence[Values], rules: Rules) -> Row:
    values, kernel = known([one.get(row["metric"]) for one in found]), row["reference"]
    if not values or kernel is None:
        return row
    least, most = min(values), max(values)
    is_near = any(rules[row["kind"]][row["metric"]].holds(value, kernel) for value in values)
    said = f"{len(values)} more simulations have {least:.4g} to {most:.4g}"
    return {
        **row,
        "chance": {
            "least": rounded(least),
            "most": rounded(most),
            "n": len(values),
            "includes": is_near or least <= kernel <= most,
        },
        "note": "; ".join(filter(None, [row["note"], said])),
    }


def _once(scene: Scene, own: Source, rtt_us: int, seed: int, number: int) -> Values:
    for key, value in _shifts(rtt_us, number).items():
        own = own.with_override(key, value)
    if scene.kind == "drawn":
        seed += scene.simulations + number  # elsewhere both worlds have the same random numbers
    samples = execute(own.at({}), seed)["samples"]
    (values,) = reduce([samples.filter(flow=0)], scene.flows, scene.mss)
    return values


def _shifts(rtt_us: int, number: int) -> dict[str, str]:
    """Keys of try `number`: another round trip; in every second try packets leave late too."""
    share = (number + 1) / TRIES
    rtt = f"{round((rtt_us + RTT_US * (2 * share - 1)) * 1e3)}ns"
    # `send_time` is the mean of what is drawn, and `send_jitter` its largest deviation.
    late = f"{round(LATE_US * share * 500)}ns"
    leaving = {"flow.0.send_time": late, "flow.0.send_jitter": late} if number % 2 else {}
    return {"topology.rtt": rtt, **leaving}
