"""What a case needs of a stack, decided from the runs: without it the case is not applicable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weir.conform.measures.observed import Observed, is_phase
from weir.results.results import INTERNAL

BBR_PHASES = ("startup", "drain", "probe_bw", "probe_rtt")


def missing(needs: Sequence[str], observed: Mapping[str, Sequence[Observed]]) -> str:
    """Why the runs cannot be judged; empty if they can."""
    runs = next(iter(observed.values()), [])
    for need in needs:
        if reason := NEEDS[need](runs):
            return reason
    return ""


def _bbr_phases(runs: Sequence[Observed]) -> str:
    names = {name for run in runs for name, _, _ in run.phases}
    if not runs or any(is_phase(name, phase) for name in names for phase in BBR_PHASES):
        return ""
    found = ", ".join(sorted(names - {"none"})) or "none"
    return f"the case needs the phases of BBR; the stack reports {found}"


def _probing_parts(runs: Sequence[Observed]) -> str:
    names = {name for run in runs for name, _, _ in run.phases}
    if not runs or any(name.startswith("probe_bw_") for name in names):
        return ""
    return "the case needs the parts of PROBE_BW, which the stack does not report"


def _startup(runs: Sequence[Observed]) -> str:
    has = any(run.spans("startup") for run in runs)
    return "" if has or not runs else "the stack reports no STARTUP"


def _delivery(runs: Sequence[Observed]) -> str:
    has = any(len(run.column("delivery_mbps")) for run in runs)
    return "" if has or not runs else "the stack reports no delivery rate"


def _pacing(runs: Sequence[Observed]) -> str:
    has = any(len(run.column("pacing_mbps")) for run in runs)
    return "" if has or not runs else "the stack reports no pacing rate"


def _variables(runs: Sequence[Observed]) -> str:
    names = {name for run in runs for name in run.samples.columns if name.startswith(INTERNAL)}
    has = any(len(run.column(name)) for run in runs for name in names)
    return "" if has or not runs else "the stack reports no internal variables"


NEEDS = {
    "bbr-phases": _bbr_phases,
    "startup": _startup,
    "probe-bw-parts": _probing_parts,
    "delivery-rate": _delivery,
    "pacing-rate": _pacing,
    "variables": _variables,
}
"""Every need by its name in the suites."""
