"""The runs of the study: every bundle with each of its stacks."""

from __future__ import annotations

from weir.studies.ccwg.bbr_draft import BBR_DRAFT
from weir.studies.ccwg.ns3 import NS3
from weir.studies.ccwg.rfc9743 import RFC9743
from weir.studies.contest import Extent

BUNDLES = (*NS3, *BBR_DRAFT, *RFC9743)

EXTENTS = {"small": Extent((), 0, 3), "full": Extent((), 0, 10)}
"""Each bundle says who runs in it and how long; the sizes differ in their seeds."""


def cases(extent: Extent) -> dict[str, str]:
    """Every scenario of the study by its label."""
    return {
        bundle.label(stack): bundle.scenario(stack, extent.repeat, extent.seed)
        for bundle in BUNDLES
        for stack in bundle.stacks
    }
