"""What is quick to start stays so: the libraries of data frames and pictures are left alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import weir

HEAVY = {"altair", "numpy", "pandas", "polars", "pyarrow", "scipy"}

LIGHT = ["send", "recv", "relay", "link", "test", "list", "doctor"]


def loaded_by(code: str) -> set[str]:
    """The packages that a new interpreter has imported after `code`."""
    return loaded_after([code])[code]


def loaded_after(steps: Sequence[str]) -> dict[str, set[str]]:
    """The packages that one new interpreter has imported after each of these steps, in turn."""
    report = f"print({MARK!r}, *{{name.partition('.')[0] for name in sys.modules}})"
    code = "\n".join(["import sys", *(f"{step}\n{report}" for step in steps)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    return {step: set(line.split()[1:]) for step, line in zip(steps, lines, strict=True)}


MARK = "loaded:"


def verb(*args: str) -> str:
    return (
        "from weir.cli import app\n"
        f"try: app({list(args)!r}, prog_name='weir')\n"
        "except SystemExit as exit: assert not exit.code, exit.code"
    )


def test_the_package_and_verbs_of_the_network_load_nothing_heavy() -> None:
    """Nor does a list of what Rust has. A step that loads something heavy is named."""
    packages = ["import weir", "import weir._native", "import weir.cli"]
    verbs = [*(verb(name, "--help") for name in LIGHT), verb("list", "controllers")]
    loaded = loaded_after([*packages, *verbs])
    assert all("weir" in names for names in loaded.values())
    assert {step: names & HEAVY for step, names in loaded.items() if names & HEAVY} == {}


def test_the_list_of_verbs_and_errors_do_without_rich() -> None:
    """Its import takes a quarter of the time of `weir --help`."""
    assert "typer" in loaded_by(verb("--help"))
    assert "rich" not in loaded_by(verb("--help"))
    assert "rich" not in loaded_by(verb("compar").replace("not exit.code", "exit.code == 2"))


def test_an_experiment_begins_before_statistics_and_pictures_are_loaded() -> None:
    """They are loaded while it runs."""
    assert not loaded_by(verb("compare", "reno", "--dry-run")) & {"numpy", "vl_convert"}


def test_a_comparison_of_single_flows_loads_no_arrays(tmp_path: Path) -> None:
    """Only flows that share a path need them, and they take a tenth of a short comparison."""
    given = ("--duration", "2s", "--repeat", "2", "--seed", "1", "--out", str(tmp_path), "--quiet")
    loaded = loaded_by(verb("compare", "reno", "cubic", *given))
    assert "polars" in loaded
    assert not loaded & {"numpy", "scipy"}


def test_what_is_heavy_is_loaded_when_it_is_asked_for() -> None:
    """So that the tests above look at something."""
    assert "polars" in loaded_by("from weir import compare")
    assert "polars" in loaded_by(verb("compare", "--help"))


def test_every_name_of_the_package_is_there_and_no_other() -> None:
    assert set(weir.__all__) <= set(dir(weir))
    assert {name for name in weir.__all__ if getattr(weir, name) is None} == set()
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        getattr(weir, "nonsense")  # noqa: B009 – the checker knows that there is none
