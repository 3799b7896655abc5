"""The examples of the package's documentation run and print what they show."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import weir

PACKAGE = Path(weir.__file__).parent
MODULES = sorted(
    ".".join(("weir", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)
SHOWN = {
    "weir.kernel",
    "weir.guest.programs",
    "weir.guest.packetdrill",
    "weir.plots",
    "weir.validation",
    "weir.radio_validation",
}
"""Packages whose examples need a guest, minutes, other files or results of another example."""
NEEDS_ROOT = {"weir.links.link"}
"""Its example has a test of its own, in `test_network_api.py`."""


@pytest.mark.parametrize("name", [name for name in MODULES if name not in SHOWN | NEEDS_ROOT])
def test_examples_print_what_they_show(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(import_module(name))
    assert found.attempted > 0, "all examples are skipped"
    assert found.failed == 0


def test_every_entry_point_has_an_example() -> None:
    assert {
        "weir",
        "weir.api.results",
        "weir.api.verbs",
        "weir.links.relay",
        "weir.transfer.files",
    } <= set(MODULES)
