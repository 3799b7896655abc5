"""Functions that run what the verbs of the command line run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Unpack

from weir.api.results import Results
from weir.base import options
from weir.base.options import documented
from weir.controllers import trust
from weir.controllers.trust import TrustControllers
from weir.running.execution import Execution, RunOptions, run_plan
from weir.scenario import arguments
from weir.scenario.arguments import suggesting
from weir.scenario.plans import Comparison, Repeat, Seed, World, scenario_plan
from weir.scenario.source import SIM, Source, read

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class CompareOptions(RunOptions, total=False):
    """The keywords of [`compare`][weir.compare]: those of `Comparison`, and of `Execution`."""

    rate: str
    rtt: str
    queue: str
    loss: str
    duration: str
    warmup: str | None
    start_jitter: str
    flows: int
    size: str | None
    against: str | None
    client: str | None
    server: str | None
    repeat: int
    seed: int
    tc: str | None
    reverse_tc: str | None
    sets: Mapping[str, object]
    sweep: Mapping[str, Sequence[object]]
    world: str


@suggesting
@documented(Comparison, Execution)
def compare(*stacks: str, **given: Unpack[CompareOptions]) -> Results:
    """Runs `stacks` on one bottleneck, with the same seeds, and returns what happened.

    >>> results = compare("reno", "cubic", rate="10mbit", rtt="40ms", duration="20s", repeat=3)
    >>> goodput = results.estimate("cubic", "goodput_mbps")
    >>> (goodput.n, 9 < goodput.mean < 10)
    (3, True)

    Quantities are text with a unit, as on the command line.

    Args:
        stacks: What to compare: `recovery/controller`, or a controller alone, which means `rack/`;
            `FILE.py:CLASS` is a controller of your own. Differences are taken to the first.

    Raises:
        TypeError: there is no such argument; the message names the nearest one.
        WeirError, ScenarioError: an argument is not valid, or nothing could be run.
    """
    arguments.stacks(stacks)
    arguments.quantities(options.of(Comparison), given)
    chosen: dict[str, Any] = {n: v for n, v in given.items() if n in options.of(Comparison)}
    chosen["sets"] = arguments.overrides(given.get("sets", _NOTHING))
    chosen["sweep"] = arguments.swept(given.get("sweep", _NOTHING))
    how: RunOptions = {n: v for n, v in given.items() if n not in chosen}  # type: ignore[assignment]
    return Results.of(run_plan(Comparison(stacks, **chosen).plan(), **how))


@suggesting
@documented(Execution)
def run(
    scenario: str | Path,
    *,
    repeat: Repeat = None,
    seed: Seed = None,
    sets: Mapping[str, object] = _NOTHING,
    sweep: Mapping[str, Sequence[object]] = _NOTHING,
    world: World = SIM,
    trust_controllers: TrustControllers = False,
    **how: Unpack[RunOptions],
) -> Results:
    """Runs a scenario: every point of its sweep, every repeat.

    >>> queues = {"topology.queue": ["0.5bdp", "2bdp"]}
    >>> results = run("two-flows", sweep=queues, sets={"measure.duration": "30s"}, repeat=2)
    >>> [case["label"] for case in results.cases]
    ['two-flows, topology.queue=0.5bdp', 'two-flows, topology.queue=2bdp']

    Args:
        scenario: The path of a file, the name of a scenario that comes with Weir, or TOML text of
            more than one line.
        sets: Keys of the scenario to change, as in `{"topology.rate": "20mbit"}`.
        sweep: Keys with the values to run, as in `{"topology.queue": ["1bdp", "4bdp"]}`.

    Raises:
        TypeError: there is no such argument; the message names the nearest one.
        WeirError, ScenarioError: the scenario is not valid, or nothing could be run.
    """
    keys = arguments.overrides(sets)
    if isinstance(scenario, str) and "\n" in scenario:
        source = Source(scenario, "scenario", keys)
    else:
        source = read(scenario, keys)
    source = source.in_world(world)
    with trust.deciding(trust.trust_all if trust_controllers else None):
        plan = scenario_plan(source, arguments.swept(sweep), repeat=repeat, seed=seed)
    return Results.of(run_plan(plan, **how))
