"""What `--help` shows: complete, grouped, in words, as wide as it may be, and soon."""

from __future__ import annotations

import inspect
import itertools
import os
import subprocess
import sys

import pytest
from conftest import Invoke, started
from rich.text import Text
from test_imports import HEAVY, loaded_by, verb
from typer.main import get_command

from weir.cli.app import _VERBS, app
from weir.cli.help import Group

PAGES = ((), *((name,) for name in _VERBS), ("kernel", "build"), ("kernel-cc", "install"))


def test_the_first_page_names_every_verb_and_what_it_does(invoke: Invoke) -> None:
    """`kernel` and `kernel-cc`, which are groups, had blank names."""
    lines = invoke("--help").stdout.splitlines()
    for name, summary in _VERBS.items():
        assert any(line.split()[:2] == [name, summary.split()[0]] for line in lines), name


def test_its_summaries_are_those_of_the_verbs() -> None:
    root = get_command(app)
    assert isinstance(root, Group)
    context = root.make_context("weir", [], resilient_parsing=True)
    for name, summary in _VERBS.items():
        found = root.get_command(context, name)
        assert found
        text = Text.from_markup(inspect.cleandoc(found.help or "")).plain
        assert " ".join(text.split("\n\n")[0].split()) == summary


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
    assert "<" not in shown
    assert "{" not in shown
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
