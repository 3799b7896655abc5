"""How exactly models find known paths: `python -m bench.accuracy` prints the tables.

Each path is simulated with one CUBIC flow and several seeds, captured at the sender, and modelled.
"""

from __future__ import annotations

import argparse
import math
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path as File

from weir.base.errors import RunError
from weir.base.grid import Grid, number
from weir.cli import screen
from weir.estimates.path import Path
from weir.estimates.quantity import Quantity
from weir.modelling import inputs
from weir.modelling.discipline import DISCIPLINES
from weir.running.runner import execute
from weir.scenario.source import SIM, VIRTUAL, Source

_SCENARIO = """
[topology]
[[flow]]
stack = "cubic"
[measure]
duration = "10s"
"""


@dataclass(frozen=True)
class Known:
    """A known path."""

    mbps: float
    rtt_ms: float
    packets: int
    loss: float
    """Share of packets lost at random."""

    @property
    def name(self) -> str:
        """The path for people."""
        path = f"{self.mbps:g} Mbit/s, {self.rtt_ms:g} ms, {self.packets} packets"
        return f"{path}, {self.loss:.1%} loss" if self.loss else path

    @property
    def keys(self) -> dict[str, str]:
        """The keys of its scenario."""
        return {
            "topology.rate": f"{self.mbps * 1e3:.0f}kbit",
            "topology.rtt": f"{self.rtt_ms}ms",
            "topology.queue": f"{self.packets}p",
            "topology.forward.loss": f"{self.loss * 100:g}%",
        }


@dataclass(frozen=True)
class Error:
    """How far a model is from the path."""

    rate: float | None
    """Relative; None if the model has a lower bound."""
    delay_ms: float
    queue: float | None
    """Relative; None if the flow did not fill it."""
    is_loss_covered: bool
    """Whether the loss is in its interval."""


PATHS = (
    Known(2, 80, 14, 0.0),
    Known(5, 20, 8, 0.0),
    Known(5, 50, 80, 0.0),
    Known(8, 150, 100, 0.005),
    Known(10, 40, 33, 0.0),
    Known(10, 40, 33, 0.002),
    Known(10, 40, 133, 0.01),
    Known(20, 40, 20, 0.0),
    Known(20, 40, 266, 0.0),
    Known(20, 100, 60, 0.001),
    Known(50, 20, 40, 0.0),
    Known(50, 100, 400, 0.001),
    Known(100, 10, 80, 0.0),
    Known(100, 10, 80, 0.02),
)
"""What the table has: shallow and deep queues, with and without random loss."""


def model_of(known: Known, seed: int, world: str = SIM, duration: str = "10s") -> Path:
    """The model of a path, from a capture of one flow on it."""
    return _modelled(known.keys, seed, world, duration)


def _modelled(
    keys: Mapping[str, str], seed: int, world: str, duration: str, more: str = ""
) -> Path:
    keys = {**keys, "measure.duration": duration}
    source = Source(_SCENARIO + more, "known path", tuple(keys.items())).in_world(world)
    with tempfile.TemporaryDirectory() as scratch:
        capture = File(scratch) / "run.pcapng"
        execute(source.at({}), seed, world, None, capture)
        return inputs.measure(capture).path


def error_of(known: Known, found: Path) -> Error:
    """How far a model is from the path."""
    queue = found.queue_bytes
    high = 1.0 if found.loss.high is None else found.loss.high
    rate = found.rate_mbps
    return Error(
        None if rate.high is None else rate.value / known.mbps - 1,
        found.delay_ms.value - known.rtt_ms,
        None if queue.high is None else queue.value / (known.packets * found.packet_bytes) - 1,
        found.loss.low <= known.loss <= high,
    )


def grid(
    paths: Sequence[Known], seeds: Sequence[int], model: Callable[[Known, int], Path] = model_of
) -> Grid:
    """The errors of all paths: the largest over the seeds."""
    headers = ["path", "rate", "delay, ms", "queue", "queues filled", "loss covered"]
    rows = list(_rows(paths, seeds, model))
    covered = sum(one[1] for one in rows)
    title = f"Largest errors over {len(seeds)} seeds"
    total = len(rows) * len(seeds)
    note = f"Loss in its 95 % interval: {covered} of {total} ({covered / total:.0%})."
    return Grid(title, headers, [one[0] for one in rows], note=note)


def model_of_test(known: Known, seed: int) -> Path:
    """The model of an emulated path, from `weir test` between its two ends; requires root.

    Raises:
        RunError: the test could not run.
    """
    return _tested(known, seed, f"loss={known.loss * 100:g}%", "--cc cubic")


def _tested(known: Known, seed: int, up: str, load: str) -> Path:
    """The same with keys of the way up, and any load."""
    weir = f"{shlex.quote(sys.executable)} -m weir"
    with tempfile.TemporaryDirectory() as scratch:
        test = f"{weir} test $WEIR_LINK_HOST {load} {_TEST} --out {shlex.quote(scratch)}"
        words = [sys.executable, "-m", "weir", "link", "--rate", f"{known.mbps * 1e3:.0f}kbit"]
        words += ["--rtt", f"{known.rtt_ms}ms", "--queue", f"{known.packets}p"]
        words += ["--up", up, "--seed", str(seed)]
        words += ["--server", f"{weir} serve --no-key", "--ready", "port:9077"]
        words += ["--", "sh", "-c", test]
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise RunError(f"{known.name}: {ended.stderr.strip().splitlines()[-1]}")
        return inputs.measure(File(scratch) / "test" / "latest").path


def policers(seeds: Sequence[int]) -> Grid:
    """How well policers are found in results of `weir test`; requires root."""
    headers = ["policer", "load", "found", "rate", "in its interval", "burst", "in its interval"]
    rows = []
    for known, mbps, burst in POLICED:
        up = f"policer.rate={mbps * 1e3:.0f}kbit,policer.burst={burst}b"
        for load in LOADS:
            paths = [_tested(known, seed, up, load) for seed in seeds]
            rates = [path.policer_mbps for path in paths if path.policer_mbps]
            bursts = [path.policer_bytes for path in paths if path.policer_bytes]
            name = f"{mbps:g} Mbit/s, {burst / 1e3:g} kB, on {known.name}"
            errors = [*_errors(rates, mbps), *_errors(bursts, burst)]
            rows.append([name, load, f"{len(rates)} of {len(paths)}", *errors])
    return Grid(f"Largest errors over {len(seeds)} seeds", headers, rows)


def _errors(found: Sequence[Quantity], true: float) -> tuple[str, str]:
    """The largest error of estimates, and how many have the true value in their interval."""
    if not found:
        return "–", "–"
    largest = max((one.value / true - 1 for one in found), key=abs)
    covered = sum(one.low <= true <= (one.high or math.inf) for one in found)
    return f"{largest:+.1%}", f"{covered} of {len(found)}"


def _rows(
    paths: Sequence[Known], seeds: Sequence[int], model: Callable[[Known, int], Path]
) -> Iterator[tuple[list[str], int]]:
    for known in paths:
        errors = [error_of(known, model(known, seed)) for seed in seeds]
        rates = [abs(one.rate) for one in errors if one.rate is not None]
        queues = [abs(one.queue) for one in errors if one.queue is not None]
        covered = sum(one.is_loss_covered for one in errors)
        row = [
            known.name,
            f"{max(rates):.2%}" if rates else "–",
            f"{max(abs(one.delay_ms) for one in errors):.2f}",
            f"{max(queues):.1%}" if queues else "–",
            f"{len(queues)} of {len(errors)}",
            f"{covered} of {len(errors)}",
        ]
        yield row, covered


def disciplines(seeds: Sequence[int], world: str = SIM) -> Grid:
    """How often the discipline of a queue is recognised, over all of `RATES`."""
    headers = ["queue", *DISCIPLINES, "policer", "none"]
    rows = []
    for title, keys in QUEUES.items():
        found = [
            _modelled({"topology.rate": rate, "topology.rtt": rtt, **keys}, seed, world, "20s")
            for rate, rtt in RATES
            for seed in seeds
        ]
        names = [path.discipline or ("policer" if path.policer_mbps else "none") for path in found]
        rows.append([title, *(str(names.count(name)) for name in headers[1:])])
    title = f"Disciplines recognised in {len(RATES) * len(seeds)} runs each"
    return Grid(title, headers, rows)


def shared(seeds: Sequence[int], world: str = SIM) -> Grid:
    """How well other traffic is estimated, on paths that no threshold was chosen on."""
    headers = ["path", "other traffic", "found", "rate", "other traffic's error", "in its interval"]
    rows = []
    for known in SHARED:
        for share in SHARES:
            mbps = known.mbps * share
            keys = {**known.keys, **_other(mbps)}
            more = _OTHER if share else ""
            paths = [_modelled(keys, seed, world, "10s", more) for seed in seeds]
            found = [path for path in paths if path.cross]
            errors = [abs(path.rate_mbps.value / known.mbps - 1) for path in paths]
            others = [path.cross for path in found if path.cross]
            rows.append(
                [
                    known.name,
                    f"{number(mbps)} Mbit/s",
                    f"{len(found)} of {len(paths)}",
                    f"{max(errors):.2%}",
                    f"{max(abs(one.value / mbps - 1) for one in others):.1%}" if others else "–",
                    f"{sum(one.low <= mbps <= (one.high or 0) for one in others)} of {len(others)}",
                ]
            )
    return Grid(f"Largest errors over {len(seeds)} seeds", headers, rows)


def _other(mbps: float) -> dict[str, str]:
    """The keys of a flow of datagrams with `mbps` of IP bytes."""
    if not mbps:
        return {}
    one = Quantity(mbps, mbps, mbps)
    path = Path(one, one, one, one, 1500, cross=one)
    (flow,) = path.cross_flows()
    return {f"flow.1.{key}": value for key, value in flow.items()}


_OTHER = "[[flow]]\nstack = 'udp'\n"
SHARED = (Known(8, 70, 40, 0.0), Known(25, 25, 80, 0.0), Known(60, 40, 150, 0.001))
SHARES = (0.0, 0.15, 0.35, 0.5)
TESTED = (
    Known(5, 50, 80, 0.0),
    Known(10, 60, 100, 0.003),
    Known(20, 40, 66, 0.0),
    Known(30, 20, 200, 0.0),
    Known(50, 30, 60, 0.001),
)
_TEST = "--direction up --repeat 2 --duration 10s --no-report --quiet"
POLICED = (
    (Known(50, 40, 166, 0.0), 10.0, 50_000),
    (Known(100, 20, 166, 0.0), 20.0, 200_000),
    (Known(30, 80, 200, 0.0), 5.0, 100_000),
    (Known(40, 60, 200, 0.0), 8.0, 30_000),
    (Known(80, 30, 300, 0.0), 15.0, 80_000),
)
LOADS = ("--cc cubic", "--cc bbr", "--stack rack/cubic")
RATES = (("8mbit", "60ms"), ("30mbit", "30ms"), ("15mbit", "120ms"), ("3mbit", "30ms"))
"""Paths that no threshold of `discipline` was chosen on."""
QUEUES = {
    "CoDel": {"topology.queue": "{ kind = 'codel' }"},
    "FQ-CoDel": {"topology.queue": "{ kind = 'fq-codel' }"},
    "PIE": {"topology.queue": "{ kind = 'pie' }"},
    "RED": {"topology.queue": "{ kind = 'red' }"},
    "policer, 2 Mbit/s, 30 kB": {
        "topology.queue": "1bdp",
        "topology.forward.policer": "{ rate = '2mbit', burst = '30kb' }",
    },
    "drop-tail, 1 BDP": {"topology.queue": "1bdp"},
    "drop-tail, 1 BDP, 0.5 % loss": {"topology.queue": "1bdp", "topology.forward.loss": "0.5%"},
    "drop-tail, 4 BDP, 0.1 % loss": {"topology.queue": "4bdp", "topology.forward.loss": "0.1%"},
}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="seeds of each path")
    parser.add_argument("--world", default=SIM, choices=(SIM, VIRTUAL))
    parser.add_argument(
        "--path", action="append", metavar="TEXT", help="only paths with TEXT in their name"
    )
    parser.add_argument("--disciplines", action="store_true", help="of queues, instead of errors")
    parser.add_argument("--tests", action="store_true", help="of weir test on emulated links")
    parser.add_argument("--policers", action="store_true", help="of policers in weir test, instead")
    parser.add_argument("--shared", action="store_true", help="of other traffic, instead")
    given = parser.parse_args()
    if given.seeds < 1:
        parser.error(f"--seeds {given.seeds}: at least 1")
    seeds = range(1, given.seeds + 1)
    if (given.disciplines or given.shared or given.policers) and given.path:
        parser.error("--path does not apply to --disciplines, --shared or --policers")
    if given.policers:
        screen.show(policers(seeds).rich())
        return
    if given.shared:
        screen.show(shared(seeds, given.world).rich())
        return
    if given.disciplines:
        screen.show(disciplines(seeds, given.world).rich())
        return
    paths = TESTED if given.tests else PATHS
    chosen = [known for known in paths if any(text in known.name for text in given.path or [""])]
    if not chosen:
        parser.error(f"--path {given.path[0]}: there is no such path")
    model = model_of_test if given.tests else partial(model_of, world=given.world)
    screen.show(grid(chosen, seeds, model).rich())


if __name__ == "__main__":
    main()
