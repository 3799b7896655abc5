"""Pass and fail, in sentences made from the verdicts."""

from __future__ import annotations

from collections.abc import Iterator

from weir.studies import envelopes
from weir.studies.ccwg.experiment import BUNDLES
from weir.studies.cells import Cells

_GROUPS = ("ns-3", "BBR draft", "RFC 9743")


def findings(cells: Cells) -> list[str]:
    """The main ones first."""
    judged = [found for found in cells.all if envelopes.is_judged(found)]
    failed = [found for found in judged if envelopes.verdict(found) != envelopes.PASS]
    return [
        *_groups(cells),
        *(envelopes.in_words(found) for found in failed),
        *_bundles(cells),
        "An envelope is kept if every run keeps it; those of RFC 9743 unless the 95 % interval of "
        "the difference is wholly on the wrong side. Bounds are the sources' and are not widened.",
    ]


def _groups(cells: Cells) -> Iterator[str]:
    for group in _GROUPS:
        own = [found for found in cells.all if str(found["table"]).startswith(group)]
        if own:
            yield envelopes.summary(own, f"Bundles of {group}" if group == "ns-3" else f"{group}")


def _bundles(cells: Cells) -> Iterator[str]:
    for bundle in BUNDLES:
        own = cells.table(bundle.name).all
        if own:
            name = bundle.name[:1].upper() + bundle.name[1:]
            yield envelopes.summary(own, f"{name} ({bundle.source})")
