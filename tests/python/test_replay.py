"""`weir ui --save` of scenarios over links: a page that runs them as the simulator does."""

from __future__ import annotations

import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from browser import opened
from conftest import Invoke

import weir
from weir import _native
from weir.base.errors import InputError
from weir.laboratory import page, replay
from weir.report.animation import Excerpt
from weir.scenario.source import Source, library, read
from weir.scenario.toml import toml

INDEX = """<html><head>
<meta content="default-src 'none'; script-src 'self' file: 'wasm-unsafe-eval'; style-src 'self'">
<title>Weir: the laboratory</title>
<script defer src="./lab.js"></script>
</head><body></body></html>
"""


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page as `make lab` writes it, whose script prints what it was given."""
    folder = tmp_path / "dist"
    folder.mkdir()
    (folder / "index.html").write_text(INDEX)
    (folder / "lab.js").write_text(
        "const ends = '</script></ScRipt><!--';\n"
        "const isSame = /<!--/u.test(ends) && /<\\/SCRIPT/iu.test(ends);\n"
        "if (isSame) document.title = ends + document.title;\n"
    )
    monkeypatch.setattr(page, "_FOLDERS", (folder,))
    return folder


@pytest.mark.parametrize("name", library())
def test_the_text_in_the_page_is_the_whole_scenario(name: str) -> None:
    """Also what its files contain: a page reads none."""
    whole = read(name).at({})
    again = _native.Scenario.parse(toml(whole.fields), [], "page")
    found = again.fields()
    found.pop("sweep", None)
    assert found == whole.fields


def test_any_text_is_kept() -> None:
    name = 'quote " \\ newline \n tab \t control \x01 \x7f letter ü </script>'
    fields = {**read("two-flows").at({}).fields, "description": name}
    again = _native.Scenario.parse(toml(fields), [], "page")
    assert again.fields()["description"] == name


def test_numbers_without_an_end_are_toml() -> None:
    text = toml({"a": math.inf, "b": [-math.inf, 1.5], "c": None})
    assert tomllib.loads(text) == {"a": math.inf, "b": [-math.inf, 1.5]}
    with pytest.raises(TypeError, match="null"):
        toml({"a": [1, None]})


def test_the_page_holds_scenario_seed_and_time(invoke: Invoke, built: Path) -> None:
    span = ("--from", "12s", "--for", "300ms", "--seed", 7)
    result = invoke("ui", "two-flows", *span, "--save", "two-flows.html")
    assert (result.exit_code, result.stdout) == (0, "two-flows.html\n")
    assert result.stderr == "the page simulates the run; open it in any browser\n"
    text = Path("two-flows.html").read_text(encoding="utf-8")
    (inside,) = re.findall(r'<script type="application/json" id="animation">(.*?)</script>', text)
    data = json.loads(inside)
    assert (data["seed"], data["from_s"], data["to_s"]) == ("7", 12, 12.3)
    assert (
        data["command"] == "weir ui two-flows --seed 7 --save two-flows.html --from 12s --for 300ms"
    )
    assert "lab.js" not in text
    assert "<title>two-flows</title>" in text
    again = invoke("ui", "two-flows", *span, "--save", "b")
    assert again.exit_code == 0
    assert Path("b").read_text(encoding="utf-8") == text
    assert built.is_dir()


@pytest.mark.usefixtures("built")
def test_the_policy_allows_its_script_alone(chromium: Any, tmp_path: Path) -> None:
    """A script that ends others, or begins a comment, runs as it is."""
    whole = read("two-flows").at({})
    path = tmp_path / "page.html"
    path.write_text(replay.replay(Excerpt(read("two-flows")), whole), encoding="utf-8")
    with opened(chromium, path) as tab:
        assert tab.title() == "</script></ScRipt><!--two-flows"


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--from", "99s"], "--from 99s --for 200ms: the run ends at 60s"),
        (["--from", "soon"], "--from soon: "),
        (["--set", "topology.rate=fast"], "topology.rate"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    invoke: Invoke, tmp_path: Path, args: list[str], message: str
) -> None:
    result = invoke("ui", "two-flows", "--save", "two-flows.html", *args)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.usefixtures("built")
def test_what_only_this_machine_runs_is_refused() -> None:
    whole = read("two-flows", (("flow.0.stack", "rack/reno"),)).at({})
    wish = Excerpt(Source("", "mine.toml"))
    foreign = {**whole.fields, "flow": [{"stack": "quinn/cubic"}]}
    with pytest.raises(InputError, match=r"mine.toml: stack = quinn/cubic: a page has no stacks"):
        replay.replay(wish, weir.scenario.source.Effective(foreign))
    scripted = {**whole.fields, "controllers": {"mine.py": "class Mine: ..."}}
    with pytest.raises(InputError, match=r"mine.toml: mine.py: a page cannot run controllers"):
        replay.replay(wish, weir.scenario.source.Effective(scripted))


def test_without_the_page_the_error_names_make_lab(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "_FOLDERS", (tmp_path / "nowhere",))
    result = invoke("ui", "two-flows", "--save", "two-flows.html")
    assert result.exit_code == 2
    assert "run make lab" in " ".join(result.stderr.split())
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.parametrize("name", ["two-flows", "parking-lot", "cellular-trace"])
def test_the_page_runs_as_the_simulator_does(
    invoke: Invoke, chromium: Any, name: str, tmp_path: Path
) -> None:
    """The page of `make lab`: the same trace hash, packets on the picture, and no request."""
    try:
        page.read()
    except InputError as error:
        pytest.skip(str(error))
    sets = {"measure.duration": "15s", "measure.warmup": "1s"}
    given = [word for item in sets.items() for word in ("--set", "=".join(item))]
    result = invoke("ui", name, *given, "--from", "12s", "--for", "100ms", "--save", "page.html")
    assert result.exit_code == 0, result.stderr
    results = weir.run(name, sets=sets, repeat=1, out=tmp_path, show_progress=False)
    with opened(chromium, Path("page.html")) as tab:
        tab.locator("body[data-state=done]").wait_for()
        tab.locator("#time", has_text="12.0000 s").wait_for()
        facts = tab.locator("#facts").text_content()
        words = tab.locator("#network").get_attribute("aria-label")
    assert f"trace hash {results.runs['trace_hash'][0]}" in facts
    assert re.search(r"Queues: .+: \d+ packets", words)
