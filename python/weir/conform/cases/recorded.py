"""Cases that are recorded runs of Linux's TCP, of the folder `recordings`: suite `linux`.

Each repeats the path of a recording with one flow and compares the metrics of `weir validate`, with
its tolerances. A recording judges the congestion control that it is of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import as_file, files
from pathlib import Path

from weir.conform.cases.bounds import Envelope
from weir.conform.cases.model import Case, Check, Picture, Variant
from weir.recordings import judge, truth
from weir.recordings.guest import Hosted, host
from weir.recordings.recorded import SEEDS
from weir.recordings.tc import UnhostedError
from weir.recordings.truth import Reference
from weir.statistics.intervals import mean_interval

_LABELS = {
    "steady_goodput_mbps": ("steady goodput", "Mbit/s"),
    "mean_cwnd_segments": ("mean window", "segments"),
    "mean_srtt_ms": ("mean smoothed RTT", "ms"),
    "retransmits": ("retransmissions", "segments"),
    "sawtooth_period_s": ("period of the sawtooth", "s"),
}
"""Name and unit of each metric that is judged."""


def cases(suite: str, known: Mapping[str, str]) -> list[Case]:
    """A case for each recording of one flow with Linux's usual loss detection.

    `known` has the reasons of known failures by recording and criterion.
    """
    found = []
    for reference in truth.read(_root()).references:
        try:
            hosted = host(reference, acks=0)
        except UnhostedError:
            continue
        if hosted.stacks == (f"rack/{reference.flows[0].cc}",):
            found.append(_case(suite, reference, hosted, known))
    return found


def _root() -> Path:
    with as_file(files("weir.conform") / "recordings") as root:
        return root


def _case(suite: str, reference: Reference, hosted: Hosted, known: Mapping[str, str]) -> Case:
    (flow,) = reference.flows
    params = ", ".join(f"{key} {value}" for key, value in sorted(reference.params.items()))
    return Case(
        suite=suite,
        id=reference.name,
        title=f"{flow.cc} of Linux {reference.kernel} on the same path",
        source=f"recorded run of Linux {reference.kernel}, tests/truth/README.md",
        procedure=f"One flow of {flow.duration_s:g} s on the recording's path: {params}.",
        controllers=[flow.cc],
        needs=[],
        seeds=SEEDS if hosted.draws else 1,
        variants={"": Variant("", hosted.source.text, (("flow.0.stack", "{stack}"),), "")},
        checks=list(_checks(reference, hosted, known)),
        picture=Picture(("cwnd_bytes", "rtt_ms"), ""),
        trigger=None,
        script="",
        stacks=[flow.cc],
    )


def _checks(reference: Reference, hosted: Hosted, known: Mapping[str, str]) -> Iterator[Check]:
    """A criterion per metric that is judged: the mean of the recordings with its tolerance."""
    (flow,) = reference.flows
    for metric, tolerance in judge.RECORDED[judge.kind(reference, draws=hosted.draws)].items():
        values = [recording[0].get(metric) for recording in reference.recordings]
        mean = mean_interval(values).mean
        if mean is None:
            continue
        name, unit = _LABELS[metric]
        yield Check(
            name=name,
            measure="as_recorded",
            arguments={"metric": metric, "start_s": flow.start_s, "duration_s": flow.duration_s},
            envelope=Envelope(*tolerance.bounds(mean)),
            unit=unit,
            join="average" if hosted.draws else "worst",
            of="",
            against=(),
            is_ours=True,
            is_yes_or_no=False,
            origin=f"Linux: {mean:.4g}, mean of {len(values)}; tolerance {tolerance}",
            needs=(),
            known={flow.cc: reason} if (reason := known.get(f"{reference.name} {name}")) else {},
        )
