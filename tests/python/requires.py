"""What some tests require: they are skipped where it is missing, and say why."""

from __future__ import annotations

import shutil

import pytest

from weir.kernel import cache
from weir.processes import netns

NO_GUEST = "no guest kernel: `make test-kernel` builds it"
NO_COUNTERS = "no guest kernel whose processor counters read virtual time (docs/worlds/kernel.md)"


def unless(lacking: str | None) -> pytest.MarkDecorator:
    """Skips a test for the reason `lacking`; runs it if there is none."""
    return pytest.mark.skipif(lacking is not None, reason=lacking or "nothing is missing")


def programs(*names: str) -> pytest.MarkDecorator:
    """Skips a test where one of these programs is not installed."""
    lacking = [name for name in names if shutil.which(name) is None]
    return unless(f"not installed: {', '.join(lacking)}" if lacking else None)


namespaces = unless(netns.missing())
"""Network namespaces and links between them."""

guest = pytest.mark.guest
"""A guest kernel: `make test-kernel` selects these tests, and `conftest.py` skips them without."""

guest_with_counters = pytest.mark.guest(virtual_tsc=True)
"""A guest kernel whose processor counters read virtual time."""


def lacking_guest(mark: pytest.Mark) -> str | None:
    """What a test with this mark of `guest` lacks."""
    has_counters = mark.kwargs.get("virtual_tsc", False)
    if cache.default(virtual_tsc=has_counters) is not None:
        return None
    return NO_COUNTERS if has_counters else NO_GUEST


def foreign_stacks(said: object) -> None:
    """Skips the test if an error says that this build has no stacks of other projects."""
    if "`make foreign` adds it" in str(said):
        pytest.skip("this build has no stacks of other projects; `make foreign` adds them")
