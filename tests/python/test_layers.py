"""The order of the layers of `python/weir`: what checks it fails when an import points up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import layers
import pytest

LINTER = Path(sys.executable).with_name("lint-imports")
DESIGN = layers.ROOT / "docs" / "design.md"
BEGIN, END = "<!-- layers: generated -->", "<!-- end of layers -->"


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Runs the contracts on the package below `root`."""
    command = [str(LINTER), "--no-cache", "--no-logo", str(layers.ROOT / "pyproject.toml")]
    environment = {**os.environ, "PYTHONPATH": str(root), "NO_COLOR": "1"}
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, to add imports to."""
    skipped = shutil.ignore_patterns("*.so", "__pycache__", "*.toml", "*.json", "*.pkt")
    return Path(shutil.copytree(layers.PACKAGE, tmp_path / "weir", ignore=skipped))


def add(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8") as opened:
        opened.write(f"\n\n{text}\n")


def test_the_contracts_hold() -> None:
    done = lint(layers.PACKAGE.parent)
    assert done.returncode == 0, done.stdout
    assert "4 kept, 0 broken" in done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "from weir.report import compose",
        "def late() -> None:\n    from weir.report import compose",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from weir.report import compose",
    ],
)
def test_an_arrow_up_breaks_a_contract(copy: Path, text: str) -> None:
    add(copy / "base" / "grid.py", text)
    done = lint(copy.parent)
    assert done.returncode == 1, done.stdout
    assert "weir.base.grid -> weir.report" in done.stdout


def test_a_circle_inside_a_layer_breaks_a_contract(copy: Path) -> None:
    add(copy / "statistics" / "student.py", "from weir.statistics import intervals")
    done = lint(copy.parent)
    assert done.returncode == 1, done.stdout
    found = layers.in_circles(layers.graph(layers.modules(copy)))
    assert {"weir.statistics.student", "weir.statistics.intervals"} <= found


def test_a_new_layer_needs_a_place_in_the_order(copy: Path) -> None:
    (copy / "attic").mkdir()
    (copy / "attic" / "__init__.py").write_text('"""New."""\n', encoding="utf-8")
    assert lint(copy.parent).returncode == 1


def test_no_module_is_in_a_circle_and_none_uses_the_face() -> None:
    known = layers.modules(layers.PACKAGE)
    assert len(known) > 300
    assert layers.in_circles(layers.graph(known)) == set()
    assert list(layers.uses_of_face(known)) == []


def test_an_import_of_the_face_is_found(copy: Path) -> None:
    add(copy / "base" / "grid.py", "from weir import compare")
    assert len(list(layers.uses_of_face(layers.modules(copy)))) == 1


def test_only_the_face_is_at_the_top() -> None:
    files = {file.name for file in layers.PACKAGE.iterdir() if file.is_file()}
    built = {name for name in files if name.endswith(".so")}
    assert files - built == {"__init__.py", "__main__.py", "_native.pyi", "py.typed"}


def test_the_design_shows_the_order() -> None:
    rows = [f"| `{layer}` | {layers.duty(layer).rstrip('.')} |" for layer in layers.order()]
    table = "\n".join(["| layer | duty |", "|---|---|", *rows])
    before, _, rest = DESIGN.read_text(encoding="utf-8").partition(BEGIN)
    old, end, after = rest.partition(END)
    assert end, f"{DESIGN}: no {BEGIN} … {END}"
    if os.environ.get("WEIR_BLESS"):
        DESIGN.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")
    else:
        assert old.strip() == table
