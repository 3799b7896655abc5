"""What the native module says of stacks, of Linux's controllers, and of fairness."""

from __future__ import annotations

import pytest

from weir import _native


@pytest.mark.parametrize(
    ("stack", "parts"),
    [
        ("cubic", ("weir", "rack", "cubic", "cubic")),
        ("go-back-n(30)/none", ("weir", "go-back-n(30)", "none", "none")),
        ("sack/cubic(hystart=off)", ("weir", "sack", "cubic(hystart=off)", "cubic")),
        ("sack/mine.py:Mine(b=0.5)", ("weir", "sack", "mine.py:Mine(b=0.5)", None)),
        ("noq/weir-cubic", ("noq", "", "weir-cubic", "cubic")),
        ("contender:quiche(cc=bbr2)", ("contender:quiche", "", "bbr2", "bbr2")),
    ],
)
def test_a_stack_has_its_parts(stack: str, parts: tuple[str, str, str, str | None]) -> None:
    assert _native.stack_parts(stack) == parts


def test_linux_has_seventeen_controllers() -> None:
    names = _native.kernel_controllers()
    assert len(set(names)) == len(names) == 17
    assert {"reno", "cubic", "bbr"} <= set(names)


def test_jains_index_is_that_of_sums() -> None:
    assert _native.jain_of_sums(2, 10.0, 50.0) == 1.0
    assert _native.jain_of_sums(2, 10.0, 100.0) == 0.5
    assert _native.jain_of_sums(1, 7.0, 49.0) is None
    assert _native.jain_of_sums(2, 0.0, 0.0) is None
