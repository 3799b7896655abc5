"""The steps of action.yml, run in a clean folder as the action runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "action"
ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an environment, as `install` leaves it."""
    program = tmp_path / "weir-venv" / "bin" / "weir"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m weir "$@"\n', encoding="ascii")
    program.chmod(0o755)
    return tmp_path


def judge(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    given = dict.fromkeys(("SUITE", "STACK", "BASELINE", "BEFORE", "AFTER"), "") | inputs
    return subprocess.run(
        [SCRIPT, "judge"],
        cwd=folder,
        env={**os.environ, "OUT": "report", **given},
        capture_output=True,
        text=True,
    )


def compared(folder: Path, rate: str) -> str:
    words = ["compare", "reno", "--duration", "2s", "--repeat", "5", "--rate", rate, "-q"]
    out = folder / rate
    subprocess.run([folder / "weir-venv/bin/weir", *words, "--out", out], check=True, cwd=folder)
    return str(out / "compare" / "latest")


def test_every_input_reaches_a_step() -> None:
    head, steps = ACTION.split("runs:")
    inputs = re.findall(r"^  ([a-z]+):$", head, re.MULTILINE)
    assert len(inputs) > 5
    assert set(re.findall(r"inputs\.([a-z]+)", steps)) == set(inputs)


def test_a_suite_is_judged_and_a_baseline_is_heeded(folder: Path) -> None:
    one = "ecn --case E1-red"
    done = judge(folder, SUITE=one, STACK="reno")
    assert done.returncode == 0, done.stderr
    assert (folder / "report" / "conform.xml").read_text().startswith("<?xml")
    assert "reno" in (folder / "report" / "conform.md").read_text()
    again = judge(folder, SUITE=one, STACK="reno", BASELINE="report/conform/latest")
    assert again.returncode == 0, again.stdout + again.stderr


def test_results_are_compared(folder: Path) -> None:
    before, after = compared(folder, "10mbit"), compared(folder, "5mbit")
    same = judge(folder, BEFORE=before, AFTER=before)
    assert same.returncode == 0, same.stdout
    assert (folder / "report" / "diff.md").read_text().startswith("```")
    assert judge(folder, BEFORE=before, AFTER=after).returncode == 1


def test_nothing_to_do_is_refused(folder: Path) -> None:
    done = judge(folder)
    assert (done.returncode, "give suite and stack" in done.stderr) == (2, True)
    assert subprocess.run([SCRIPT, "x"], capture_output=True).returncode == 2
