"""What `--help` shows: complete, grouped, in words, as wide as it may be, and soon."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Invoke, started
from test_imports import HEAVY, loaded_by, verb

from weir import cli
from weir.cli.app import VERBS

SUMMARIES = {name: summary for panel in VERBS.values() for name, summary in panel.items()}
PAGES = ((), *((name,) for name in SUMMARIES), ("stack", "kernel"), ("stack", "bpf"))


def test_the_first_page_has_a_line_for_each_verb_by_purpose(invoke: Invoke) -> None:
    lines = invoke("--help").stdout.splitlines()
    places = [lines.index(f"{panel}:") for panel in VERBS]
    assert places == sorted(places)
    for name, summary in SUMMARIES.items():
        assert any(line.split() == [name, *summary.split()] for line in lines), name


def test_there_are_few_verbs_each_in_a_file_of_its_name() -> None:
    """More than a panel of six each cannot be chosen from."""
    assert len(SUMMARIES) <= 25
    assert max(map(len, VERBS.values())) <= 6
    for name in SUMMARIES:
        assert (Path(cli.__file__).parent / f"{name}.py").is_file()


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_summary_stands_once_and_begins_the_verbs_page(invoke: Invoke, name: str) -> None:
    """So that a new verb is a file and a line."""
    paragraphs = invoke(name, "--help").stdout.split("\n\n")
    assert " ".join(paragraphs[1].split()) == SUMMARIES[name]
    sources = Path(cli.__file__).parent.glob("*.py")
    assert sum(f'"{SUMMARIES[name]}"' in s.read_text(encoding="utf-8") for s in sources) == 1


def test_the_first_page_imports_no_verb_and_nothing_heavy() -> None:
    assert not loaded_by(verb("--help")) & {*HEAVY, "markdown_it", "pygments"}
    code = f"{verb('--help')}\nimport sys\nassert 'weir.cli.compare' not in sys.modules"
    assert "weir" in loaded_by(code)


def test_options_stand_in_groups(invoke: Invoke) -> None:
    page = invoke("compare", "--help").stdout
    titles = ["Arguments:", "Network:", "Traffic:", "Measurement:", "Output:"]
    places = [page.index(f"\n{title}\n") for title in titles]
    assert places == sorted(places)
    groups = (page[a:b] for a, b in itertools.pairwise([*places, len(page)]))
    of_group = dict(zip(titles, groups, strict=True))
    assert "--rate RATE" in of_group["Network:"]
    assert "--flows NUMBER" in of_group["Traffic:"]
    assert "-n, --repeat NUMBER" in of_group["Measurement:"]
    assert "--json" in of_group["Output:"]


@pytest.mark.parametrize("page", PAGES, ids=" ".join)
def test_types_are_words_and_pages_are_80_columns_wide(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, page: tuple[str, ...]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    shown, _, _ = invoke(*page, "--help").stdout.partition("\nExamples\n")
    # Words above the first group may have ranges in braces.
    groups = re.split(r"\n(?=[A-Z][a-z ]*:\n)", shown, maxsplit=1)[-1]
    assert "<" not in groups
    assert "{" not in groups
    assert max(map(len, shown.splitlines())) <= 80


def test_columns_are_honoured_in_a_pipe(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def widest(*command: str) -> int:
        return max(len(line.rstrip()) for line in invoke(*command).stdout.splitlines())

    list_ = ("list", "metrics")
    assert widest(*list_) > 100
    monkeypatch.setenv("COLUMNS", "60")
    assert widest("--help") <= 60
    assert widest(*list_) <= 60


@pytest.mark.parametrize(
    "command", ["--help", "list", "list --json", "compare reno --duration 1s -n 1 -q"]
)
def test_a_reader_that_leaves_is_no_failure(command: str, tmp_path: os.PathLike[str]) -> None:
    """As in `weir --help | head -1`, whose reader is gone before the first line is written."""
    reader, writer = os.pipe()
    os.close(reader)
    with started(*command.split(), stdout=writer, cwd=tmp_path) as process:
        os.close(writer)
        _, stderr = process.communicate()
    assert (process.returncode, stderr) == (0, "")


def test_an_unknown_verb_is_refused_with_the_nearest_one() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "weir", "comprae"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "did you mean compare?" in done.stderr
