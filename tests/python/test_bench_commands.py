"""Every benchmark of the Makefile has help in the style of `weir`, and errors of one line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = set(re.findall(r"-m (bench[\w.]*)", (ROOT / "Makefile").read_text(encoding="utf-8")))
MODULES = sorted(NAMED - {"bench.training"})
"""All that measure."""


def run(module: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", MODULES)
def test_help_names_the_command_and_its_options(module: str) -> None:
    if module == "bench.dask":
        pytest.importorskip("distributed")
    ended = run(module, "--help")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(f"Usage: python -m {module} [OPTIONS]")
    assert re.search(r"^  --json +Print one JSON object\.", ended.stdout, re.MULTILINE)
    assert "<" not in ended.stdout


def test_there_are_benchmarks() -> None:
    assert {"bench", "bench.udp", "bench.flood"} <= set(MODULES)


def test_the_default_of_a_pair_of_options_is_its_name() -> None:
    assert "[default: --ns3]" in run("bench", "--help").stdout


@pytest.mark.parametrize("module", ["bench.link", "bench.udp", "bench.flood"])
def test_an_unknown_part_is_one_line_and_exit_code_2(module: str) -> None:
    ended = run(module, "--only", "nothing-like-it")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"{module}: ")
    assert "nothing-like-it" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
