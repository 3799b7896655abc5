"""What some tests require: they are skipped where it is missing, and say why."""

from __future__ import annotations

import shutil

import pytest

from weir.kernel import cache
from weir.processes import netns

NO_GUEST = "no guest kernel: `weir stack kernel` makes it"


def unless(lacking: str | None) -> pytest.MarkDecorator:
    """Skips a test for the reason `lacking`; runs it if there is none."""
    return pytest.mark.skipif(lacking is not None, reason=lacking or "nothing is missing")


def programs(*names: str) -> pytest.MarkDecorator:
    """Skips a test where one of these programs is not installed."""
    lacking = [name for name in names if shutil.which(name) is None]
    return unless(f"not installed: {', '.join(lacking)}" if lacking else None)


namespaces = unless(netns.missing())
"""Network namespaces and links between them."""

guest = unless(NO_GUEST if cache.default() is None else None)
"""A guest kernel."""


def foreign_stacks(said: object) -> None:
    """Skips the test if an error says that this build has no stacks of other projects."""
    if "`make foreign` adds it" in str(said):
        pytest.skip("this build has no stacks of other projects; `make foreign` adds them")
