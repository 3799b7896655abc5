"""Text from outside is text: never markup of a terminal or of a page."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke
from made import change, compared
from polars import lit
from rich.console import Console

import weir
from weir.api.reports import write
from weir.base.grid import Grid
from weir.base.plain import plain
from weir.cli import output, transfer
from weir.report.compose import compose
from weir.running.progress import bar

HOSTILE = (
    "[bold red]x",
    "p[/red]/f",
    "[link=file:///etc/passwd]click[/link]",
    "\x1b[2J\x1b]0;title\x07",
    "\x9b31mred",
    "back\b\b\bwards\rover",
    "turned\u202eround",
    "not\udcffutf-8",
    "{task.total.__class__}",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "two\nlines",
)

_OWN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What Rich itself writes to move and to colour."""
_ACTIVE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def facts(name: str) -> dict[str, Any]:
    """A progress report."""
    return {
        "peers": 1,
        "hashing": False,
        "files_done": 0,
        "files": 1,
        "name": name,
        "bytes": 10,
        "bytes_done": 1,
        "cwnd_bytes": None,
        "srtt_ms": None,
        "segments": 0,
        "retransmits": 0,
        "reconnects": 0,
    }


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "300", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)


def assert_plain(drawn: str, text: str) -> None:
    """The text stands there letter by letter, and nothing of it does anything."""
    assert not _ACTIVE.search(_OWN.sub("", drawn.replace("\r", "")))
    visible = plain(text)
    assert visible[:10] in _OWN.sub("", drawn)
    assert "\x1b[2J" not in drawn


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.usefixtures("terminal")
def test_bars_show_names_as_they_are(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with transfer.bar(show=True) as line:
        line.show(facts(text[:28]))
        line.write(text)
    assert_plain(capsys.readouterr().err, text)
    with bar(text, 3):
        pass
    assert_plain(capsys.readouterr().err, text)


@pytest.mark.usefixtures("terminal")
def test_what_is_printed_does_not_end_up_in_the_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with transfer.bar(show=True) as line:
        line.show(facts("a"))
        with line.hidden():
            capsys.readouterr()
            print("a table", file=sys.stderr, flush=True)
            time.sleep(0.3)  # the bar is drawn ten times a second
            assert capsys.readouterr().err == "a table\n"
        line.show(facts("a"))


@pytest.mark.parametrize("text", HOSTILE)
def test_tables_and_notes_show_texts_as_they_are(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=300)
    console.print(Grid(text, (text, text), [(text, text)], note=text).rich())
    assert_plain(file.getvalue(), text)
    output.note(text, quiet=False)
    assert_plain(capsys.readouterr().err, text)


def test_what_is_plain_already_stays() -> None:
    for text in ("µs, 5 % – «ja»", "日本語", "e\u0301", "😀", "a\tb"):
        assert plain(text) == text
    assert plain("a\x1b[2Jb\u202e\udcff\n") == "a\\x1b[2Jb\\u202e\\udcff\\n"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> weir.Results:
    """Results that have markup wherever a text may stand."""
    results = compared(tmp_path_factory.mktemp("hostile"), "reno", "cubic")
    text = "".join(HOSTILE[:5]) + HOSTILE[9]
    results = change(results, "flows", (lit(text)).alias("name"))
    manifest = json.loads((results.path / "manifest.json").read_text(encoding="utf-8"))
    for key in ("command", "version"):
        manifest[key] = text
    manifest["health"] |= {"verdict": text, "warnings": [text]}
    manifest["host"] |= dict.fromkeys(("system", "release", "machine", "python"), text)
    for case in manifest["cases"]:
        case["scenario"]["description"] = text
        case["scenario"]["flow"][0]["name"] = text
    (results.path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return weir.load(results.path)


class _Elements(HTMLParser):
    """Collects the elements of a page, and the attributes that could run something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.active: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.active.append(name)


def test_a_report_holds_texts_as_they_are(hostile: weir.Results) -> None:
    page = write(hostile).read_text(encoding="utf-8")
    found = _Elements()
    found.feed(page)
    assert found.active == []
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page
    assert found.tags.count("img") == page.count('<img src="data:image/svg+xml;base64,')


@pytest.mark.parametrize("verb", ["diff", "report", "export"])
def test_verbs_print_texts_of_results_as_they_are(
    verb: str, hostile: weir.Results, invoke: Invoke
) -> None:
    more = {"diff": (hostile.path, "--all"), "report": (), "export": ("-f", "csv")}[verb]
    done = invoke(verb, hostile.path, *more)
    assert not _ACTIVE.search(done.stdout + done.stderr)


def test_a_name_from_results_is_no_path(hostile: weir.Results, invoke: Invoke) -> None:
    path = hostile.path / "manifest.json"
    before = path.read_text(encoding="utf-8")
    try:
        path.write_text(json.dumps({**json.loads(before), "name": "../../up"}), encoding="utf-8")
        done = invoke("export", hostile.path, "-f", "csv")
        assert done.exit_code == 0, done.output
        assert Path("up-csv").is_dir()
    finally:
        path.write_text(before, encoding="utf-8")


def test_a_figure_is_written_below_its_folder(hostile: weir.Results, tmp_path: Path) -> None:
    figure = next(figure for section in compose(hostile).sections for figure in section.figures)
    (path,) = replace(figure, name="study-../../up").save(tmp_path, ["svg"])
    assert path.parent == tmp_path
    assert path.is_file()
