"""The set of scenarios in the simulator and in a kernel's TCP, with the same random numbers."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Unpack

import polars as pl

from weir import _native
from weir.base.errors import InputError
from weir.base.options import Option
from weir.kernel import cache, receiver, recipe
from weir.recordings import judge
from weir.recordings.judge import Rules
from weir.recordings.outcome import Cases, Validation, keep, values, wanted
from weir.recordings.truth import COMPLETION, REQUEST, Reference, Values
from weir.results.results import Results
from weir.results.series import series
from weir.running.execution import RunOptions, run_plan
from weir.scenario.source import KERNEL, SIM, VIRTUAL, Source
from weir.scenario.sweep import Case, Plan
from weir.statistics.intervals import independent_ratio, mean_ratio
from weir.validation import cases as catalogue
from weir.validation import chance, sampled
from weir.validation.cases import SIZES, SMALL, Scene
from weir.validation.known import explained
from weir.validation.spread import RETRANSMITS

REPEAT = 5
"""Runs per case with randomness; in real time, of every case."""

_BESIDE_REAL_TIME = 40
"""Fewest simulations of flows that meet, for runs of which no two are the same."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """Where the kernel is, and what that means for a comparison."""

    world: str
    algorithms: tuple[str, ...]
    rules: Rules
    is_exact: bool
    """Whether two of its runs are the same, as two of the simulator's are."""

    extra_us: int
    """By how much a round trip without a queue is longer than the path's."""

    receiver: Callable[[], Mapping[str, str]] = dict
    """The keys by which our receivers differ here from those of a `Scene`."""


# A receiver answers 0.06 to 0.1 ms after a segment was due, a sender 0.03 ms after an
# acknowledgement was (docs/validation): mostly the waking of a thread on another core.
LIVE = Kernel(
    KERNEL, catalogue.BUILT_IN, judge.LIVE, is_exact=False, extra_us=110, receiver=receiver.here
)
# A guest's hosts take no time at all.
IN_VIRTUAL_TIME = Kernel(
    world=VIRTUAL,
    algorithms=catalogue.ALL,
    rules=judge.VIRTUAL,
    is_exact=True,
    extra_us=0,
    receiver=receiver.of_guest,
)


@dataclass(frozen=True)
class Comparison:
    """What is to run, and what cannot."""

    kernel: Kernel
    scenes: Sequence[Scene]
    plan: Plan
    left_out: Mapping[str, str]

    def run_plan(self, **how: Unpack[RunOptions]) -> Validation:
        """Runs it and compares."""
        return compare(self, run_plan(self.plan, **how))


def validate_kernel(
    *,
    virtual: bool = False,
    size: str = SMALL,
    cases: Sequence[str] = (),
    repeat: int | None = None,
    seed: int = 1,
    **how: Unpack[RunOptions],
) -> Validation:
    """Carries the set out in the simulator and in the kernel, and compares.

    Live it is this machine's kernel in real time, with `virtual` a guest's in virtual time. `cases`
    are patterns as of file names.

    Raises:
        WeirError: no case matches, or none can run; the message says why.
    """
    compared = comparison(virtual=virtual, size=size, cases=cases, repeat=repeat, seed=seed)
    return compared.run_plan(**how)


def comparison(
    *,
    virtual: Annotated[bool, Option("Compare with a guest's kernel, in virtual time.")] = False,
    size: Annotated[
        str, Option("Number of cases and length of runs.", metavar="|".join(SIZES))
    ] = SMALL,
    cases: Cases = (),
    repeat: Annotated[
        int | None,
        Option(
            "Runs per case; in virtual time only of cases with randomness.",
            default_text=str(REPEAT),
            min=2,
        ),
    ] = None,
    seed: Annotated[int, Option("Random seed of the first run.")] = 1,
) -> Comparison:
    """Every run of a validation.

    Raises:
        InputError: no case matches, or none can run.
    """
    kernel = IN_VIRTUAL_TIME if virtual else LIVE
    repeat = repeat or REPEAT
    if size not in SIZES:
        raise InputError(f"--size {size}: there are {' and '.join(SIZES)}")
    algorithms = kernel.algorithms if virtual else (*kernel.algorithms, *catalogue.registered())
    words = ["--size", size, "--repeat", str(repeat)]
    return _comparison(
        kernel, catalogue.scenes(SIZES[size], algorithms), cases, words, repeat, seed
    )


def random_comparison(
    count: int,
    *,
    cases: Sequence[str] = (),
    repeat: int = sampled.RUNS,
    seed: int = 1,
) -> Comparison:
    """Every run of a validation on `count` random paths, with a guest's kernel.

    Where anything is random, the kernel runs `repeat` times.

    Raises:
        InputError: no case matches, or none can run.
    """
    kernel = replace(IN_VIRTUAL_TIME, algorithms=recipe.CONTROLS, rules=judge.SAMPLED)
    words = ["--random", str(count), "--repeat", str(repeat)]
    return _comparison(kernel, sampled.scenes(count, seed), cases, words, repeat, seed)


def _comparison(
    kernel: Kernel,
    of: Iterable[Scene],
    cases: Sequence[str],
    words: Sequence[str],
    repeat: int,
    seed: int,
) -> Comparison:
    scenes = {scene.name: scene for scene in of}
    chosen, planned, left_out = [], [], {}
    for name in wanted([*scenes], cases):
        try:
            planned += _cases(scenes[name], kernel, repeat, seed)
            chosen.append(scenes[name])
        except (_native.ScenarioError, InputError) as error:
            left_out[name] = str(error)
    if not planned:
        raise InputError(f"nothing can be compared: {next(iter(left_out.values()))}")
    command = ["weir", "validate"]
    if kernel.world == VIRTUAL:
        command += ["--virtual", *(["--kernel", cache.chosen()] if cache.chosen() else [])]
    command += [*words, "--seed", str(seed)]
    command += [word for pattern in cases for word in ("--case", pattern)]
    most = max(case.scenario.repeat for case in planned)
    plan = Plan("validate", shlex.join(command), tuple(planned), most, seed)
    return Comparison(kernel, chosen, plan, left_out)


def compare(compared: Comparison, results: Results) -> Validation:
    """Reads both sides of each case, and judges."""
    kernel = compared.kernel
    rows, references = [], []
    for scene in compared.scenes:
        ours = _own(results, scene.name)
        theirs = _own(results, _there(scene))
        if ours.is_empty() or theirs.is_empty():
            where = "simulation" if ours.is_empty() else "kernel's run"
            rows.append(judge.skipped(scene.name, f"the {where} failed"))
            continue
        found, note, is_sure = trusted(theirs)
        references.append(_reference(scene, results, found))
        matched = not scene.simulations and (kernel.is_exact or not scene.competes)
        # Where ours are as many as the kernel's, each has the random numbers of one of these.
        if matched and ours.height > 1:
            ours = ours.join(found, on="seed", how="semi")
        ratio = mean_ratio if matched else independent_ratio
        own = _values(scene, results, ours)
        judged = judge.rows(references[-1], scene.kind, own, kernel.rules, ratio)
        if kernel.rules is judge.SAMPLED and not scene.simulations:
            rtt_us, seed = _rtt_us(scene, kernel), compared.plan.seed
            own_source = _simulated(scene, kernel)
            judged = chance.examined(scene, own_source, rtt_us, judged, kernel.rules, seed)
        for row in judged:
            said = "; ".join(filter(None, [note, row["note"]]))
            own_controller = {} if scene.competes else {"controller": scene.flows[0].cc}
            group = {"group": scene.group} if scene.group else {}
            noted = {**row, **own_controller, **group, "note": said}
            rows.append(explained(noted) if is_sure else judge.unjudged(noted))
    rows += [judge.skipped(name, reason) for name, reason in compared.left_out.items()]
    return keep(rows, results, references)


def _cases(scene: Scene, kernel: Kernel, repeat: int, seed: int) -> list[Case]:
    """The scene in both worlds, as often as there is something to learn from it."""
    here = repeat if scene.draws else 1
    if scene.competes and not kernel.is_exact:
        here = max(repeat, _BESIDE_REAL_TIME)
    there = here if kernel.is_exact else repeat
    if scene.simulations:
        here, there = max(scene.simulations, repeat), repeat
    found = []
    own = _simulated(scene, kernel)
    sides = ((scene.name, SIM, own, here), (_there(scene), kernel.world, scene.source, there))
    for label, world, source, runs in sides:
        source = source.with_override("measure.repeat", str(runs))
        scenario = source.with_override("measure.seed", str(seed)).in_world(world).at({})
        found.append(Case(label, " + ".join(scenario.stacks), {}, scenario, world))
    return found


def _simulated(scene: Scene, kernel: Kernel) -> Source:
    """The scene in the simulator, with hosts as those of the kernel."""
    own = scene.simulated.with_override("topology.rtt", f"{_rtt_us(scene, kernel)}us")
    hosts = {**receiver.SEND_BUFFER, **kernel.receiver()}
    buffers = [value for key, value in scene.source.overrides if key.endswith(".recv_buffer")]
    if buffers:
        hosts = {key: value for key, value in hosts.items() if key not in receiver.WINDOWS}
        hosts |= receiver.of_guest_with_buffer(buffers[0])
    for key, value in hosts.items():
        own = own.with_override(f"flow.*.{key}", value)
    return own


def _rtt_us(scene: Scene, kernel: Kernel) -> int:
    return scene.rtt_ms * 1_000 + kernel.extra_us


def _there(scene: Scene) -> str:
    """The label of its runs in the kernel."""
    return f"{scene.name}, kernel"


def _own(results: Results, label: str) -> pl.DataFrame:
    return results.runs.filter(label=label, status="ok").sort("repeat")


def trusted(runs: pl.DataFrame) -> tuple[pl.DataFrame, str, bool]:
    """The runs that kept to the time, all if none did; what is to be said; whether to believe."""
    bad = runs.filter(pl.col("health").is_not_null() & (pl.col("health") != "good"))
    if bad.is_empty():
        return runs, "", True
    are = "is" if bad.height == 1 else "are"
    note = f"{bad.height} of {runs.height} runs of the kernel {are} not to be believed: "
    note += str(bad["health"][0])
    good = runs.join(bad, on="run", how="anti")
    return (runs, note, False) if good.is_empty() else (good, f"left out: {note}", True)


def _reference(scene: Scene, results: Results, runs: pl.DataFrame) -> Reference:
    """What the kernel did, in the form of a recording."""
    settings = runs["settings"][0] if "settings" in runs.columns else None
    return Reference(
        scene.name,
        {},
        str(settings or "Linux").partition(";")[0].removeprefix("Linux").strip(),
        scene.flows,
        tuple(tuple(flows) for flows in _values(scene, results, runs)),
        series(results, runs["run"][0], scene.mss),
        None,
    )


def _values(scene: Scene, results: Results, runs: pl.DataFrame) -> list[list[Values]]:
    """The metrics of each flow of each run."""
    found = []
    for run in runs["run"]:
        flows = results.flows.filter(run=run).sort("flow")
        own = values(results, run, scene.flows, scene.mss)
        by_flow = flows.select(REQUEST, COMPLETION).iter_rows()
        found.append([_timed(v, *times) for v, times in zip(own, by_flow, strict=True)])
    return found


def _timed(flow: Values, request_ms: float | None, completion_s: float | None) -> Values:
    """With the times of a flow that asks, or sends a file: that has no steady part."""
    if request_ms is not None:
        return {**flow, REQUEST: request_ms}
    if completion_s is not None:
        return {RETRANSMITS: flow[RETRANSMITS], COMPLETION: completion_s}
    return flow
