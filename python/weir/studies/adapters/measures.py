"""How a controller does in a host and in our transport, and which setting makes the difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weir.cells.cells import Cells, digits
from weir.cells.claims import ratio
from weir.experiments.contest import Contests
from weir.statistics.intervals import Estimate, mean_interval

_DELAY = "queue_delay_ms_mean"
_UNKNOWN = "; no setting of the host explains it"


def measured(
    contests: Contests, path: str, stacks: Iterable[str], controller: str, column: str
) -> dict[str, Estimate]:
    """A column of table `flows` for a controller on a path, by stack."""
    found = {
        name: contests.flow(f"{path}, {name}, {controller}", "flow", column) for name in stacks
    }
    return {name: mean_interval(own.values(), (0.0, None)) for name, own in found.items()}


def why(
    theirs: Estimate,
    ours: Mapping[str, Estimate],
    transports: Mapping[str, Mapping[str, str]],
    bound: Mapping[str, float | str],
    packet_ms: float,
) -> str:
    """Returns why a host differs from our transport, with a semicolon in front, or nothing.

    The cause is the first setting of the host with which our transport is inside the bound. Without
    one, queue delays that are less than a packet's transmission time apart are no difference.
    """
    for name, transport in transports.items():
        found = ratio(theirs, ours[name]).mean
        if found is not None and abs(found - 1) <= float(bound["within"]):
            return f"; {transport['why']}: {digits(found)} with it" if transport["why"] else ""
    base = ours["weir"].mean
    is_delay = bound["column"] == _DELAY
    if is_delay and theirs.mean is not None and base is not None:
        apart = abs(theirs.mean - base)
        if apart < packet_ms:
            return f"; {digits(apart)} ms is less than a packet takes on the link"
    return _UNKNOWN


def unexplained(cells: Cells) -> int:
    """The number of cells without a known cause."""
    return sum(str(cell["note"]).endswith(_UNKNOWN) for cell in cells.all)
