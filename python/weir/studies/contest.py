"""Small contests over one bottleneck: their scenarios, and what each flow got in each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weir.results import Results

SEVEN = ("reno", "cubic", "bbr", "vegas", "veno", "westwood", "dctcp")
"""The controllers that full studies compare."""

FOUR = SEVEN[:4]
"""Those that small ones compare."""

_TOPOLOGY = """
name = "{name}"

[topology]
rate = "{rate}"
rtt = "{rtt}"
queue = {queue}
"""

_FLOW = """
[[flow]]
name = "{name}"
stack = "{stack}"
start_jitter = "{wait}"
rtt = "{rtt}"
"""

_MEASURE = """
[measure]
duration = "{seconds:g}s"
warmup = "{warmup:g}s"
sample_interval = "0s"
repeat = {repeat}
seed = {seed}
"""

WARMUP_SHARE = 4
"""One part in so many of each run is left out, in which the flows find their places."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of a study is carried out."""

    stacks: Sequence[str]
    seconds: float
    repeat: int
    seed: int


def topology(name: str, rate: str, rtt: str, queue: str) -> str:
    """The head of a scenario with a dumbbell; `queue` is TOML."""
    return _TOPOLOGY.format(name=name, rate=rate, rtt=rtt, queue=queue)


def flow(name: str, stack: str, wait: str, rtt: str) -> str:
    """A bulk flow that waits a random time up to `wait` before it starts."""
    return _FLOW.format(name=name, stack=stack, wait=wait, rtt=rtt)


def measure(extent: Extent) -> str:
    """What is measured: totals, no series."""
    return _MEASURE.format(
        seconds=extent.seconds,
        warmup=extent.seconds / WARMUP_SHARE,
        repeat=extent.repeat,
        seed=extent.seed,
    )


class Contests:
    """What every flow of every run got, by case and by seed."""

    def __init__(self, results: Results) -> None:
        runs = results.runs.filter(status="ok").select("run", "label", "seed")
        self._flows = {
            (str(label), str(name)): own
            for (label, name), own in results.flows.join(runs, on="run")
            .partition_by("label", "name", as_dict=True)
            .items()
        }
        links = results.links.filter("monitored").sort("run", "link").unique("run", keep="first")
        self._links = {
            str(label): own
            for (label,), own in links.join(runs, on="run")
            .partition_by("label", as_dict=True)
            .items()
        }

    def flow(self, label: str, name: str, column: str) -> Mapping[int, float | None]:
        """A column of table `flows` for one flow of a case, by seed."""
        own = self._flows.get((label, name))
        return {} if own is None else dict(zip(own["seed"], own[column], strict=True))

    def link(self, label: str, column: str) -> Mapping[int, float | None]:
        """A column of table `links` for the bottleneck of a case, by seed."""
        own = self._links.get(label)
        return {} if own is None else dict(zip(own["seed"], own[column], strict=True))
