"""Flent's data files, versions 3 and 4: series of rates over time, and of pings.

Source: Flent 2.1.1, `resultset.py`. Rates are Mbit/s, pings ms. A series that sums or averages
others is left out, because it is no flow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weir.base.errors import InputError
from weir.importing.runs import UNKNOWN, ImportedFlow, ImportedRun, Sample

_DERIVED = ("sum", "avg", "totals", "fairness")
_RATE, _PING = "Mbits/s", "ms"


def is_own(document: Mapping[str, Any]) -> bool:
    """Whether a document is a data file of Flent."""
    return "x_values" in document and isinstance(document.get("results"), Mapping)


def run(file: Path, document: Mapping[str, Any]) -> ImportedRun:
    """The run of a file.

    Raises:
        InputError: it has no flow.
    """
    times = [float(t) for t in document["x_values"]]
    meta = document.get("metadata", {})
    series = meta.get("SERIES_META", {})
    raw = document.get("raw_values", {})
    flows = []
    pings: list[tuple[float, float]] = []
    for name, values in document["results"].items():
        own = series.get(name, {})
        unit = str(own.get("UNITS", _RATE if name.startswith("TCP") else ""))
        if name.lower().startswith("ping") or unit == _PING:
            pings += [(t, float(v)) for t, v in zip(times, values, strict=False) if v is not None]
        elif name.startswith("TCP") and not name.split("::")[0].lower().endswith(_DERIVED):
            flow = _flow(name, times, values, own, raw.get(name, []), meta)
            flows += [flow] if flow else []
    if not flows:
        names = ", ".join(document["results"]) or "none"
        raise InputError(f"{file}: no TCP flow among its series ({names})")
    return ImportedRun("Flent", flows, pings)


def _flow(
    name: str,
    times: Sequence[float],
    values: Sequence[float | None],
    own: Mapping[str, Any],
    raw: Sequence[Mapping[str, Any]],
    meta: Mapping[str, Any],
) -> ImportedFlow | None:
    """A series of rates: what was delivered is their sum over time."""
    known = [(t, float(v)) for t, v in zip(times, values, strict=False) if v is not None]
    if len(known) < 2:
        return None
    step = float(meta.get("STEP_SIZE") or known[1][0] - known[0][0])
    start = max(known[0][0] - step, 0.0)
    begin = float(raw[0]["t"]) - known[0][0] if raw and "t" in raw[0] else 0.0
    by_time = {round(float(one["t"]) - begin, 1): one for one in raw if "t" in one}
    delivered, samples, before = 0.0, [], start
    for t, mbps in known:
        delivered += mbps * 1e6 / 8 * (t - before)
        before = t
        more = by_time.get(round(t, 1), {})
        rtt = more.get("tcp_rtt")
        samples.append(Sample(t, mbps, None if rtt is None else float(rtt), acked_bytes=delivered))
    stack = own.get("CONG_CONTROL") or own.get("UPSTREAM_CONG_CONTROL") or UNKNOWN
    return ImportedFlow(name, str(stack), start, known[-1][0], delivered, samples)
