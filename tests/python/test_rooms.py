"""The order of the rooms of `python/weir`: what checks it fails when an import points up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import rooms

LINTER = Path(sys.executable).with_name("lint-imports")
DESIGN = rooms.ROOT / "docs" / "design.md"
BEGIN, END = "<!-- rooms: generated -->", "<!-- end of rooms -->"


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Runs the contracts on the package below `root`."""
    command = [str(LINTER), "--no-cache", "--no-logo", str(rooms.ROOT / "pyproject.toml")]
    environment = {**os.environ, "PYTHONPATH": str(root), "NO_COLOR": "1"}
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, to add imports to."""
    skipped = shutil.ignore_patterns("*.so", "__pycache__", "*.toml", "*.json", "*.pkt")
    return Path(shutil.copytree(rooms.PACKAGE, tmp_path / "weir", ignore=skipped))


def add(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8") as opened:
        opened.write(f"\n\n{text}\n")


def test_the_contracts_hold() -> None:
    done = lint(rooms.PACKAGE.parent)
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


def test_a_circle_inside_a_room_breaks_a_contract(copy: Path) -> None:
    add(copy / "statistics" / "student.py", "from weir.statistics import intervals")
    done = lint(copy.parent)
    assert done.returncode == 1, done.stdout
    found = rooms.in_circles(rooms.graph(rooms.modules(copy)))
    assert {"weir.statistics.student", "weir.statistics.intervals"} <= found


def test_a_new_room_needs_a_place_in_the_order(copy: Path) -> None:
    (copy / "attic").mkdir()
    (copy / "attic" / "__init__.py").write_text('"""New."""\n', encoding="utf-8")
    assert lint(copy.parent).returncode == 1


def test_no_module_is_in_a_circle_and_none_uses_the_face() -> None:
    known = rooms.modules(rooms.PACKAGE)
    assert len(known) > 300
    assert rooms.in_circles(rooms.graph(known)) == set()
    assert list(rooms.uses_of_face(known)) == []


def test_an_import_of_the_face_is_found(copy: Path) -> None:
    add(copy / "base" / "grid.py", "from weir import compare")
    assert len(list(rooms.uses_of_face(rooms.modules(copy)))) == 1


def test_only_the_face_is_at_the_top() -> None:
    files = {file.name for file in rooms.PACKAGE.iterdir() if file.is_file()}
    built = {name for name in files if name.endswith(".so")}
    assert files - built == {"__init__.py", "__main__.py", "_native.pyi", "py.typed"}


def test_the_design_shows_the_order() -> None:
    rows = [f"| `{room}` | {rooms.duty(room).rstrip('.')} |" for room in rooms.rooms()]
    table = "\n".join(["| room | duty |", "|---|---|", *rows])
    before, _, rest = DESIGN.read_text(encoding="utf-8").partition(BEGIN)
    old, end, after = rest.partition(END)
    assert end, f"{DESIGN}: no {BEGIN} … {END}"
    if os.environ.get("WEIR_BLESS"):
        DESIGN.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")
    else:
        assert old.strip() == table
