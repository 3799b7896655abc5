"""The documentation as a site: every page is there, links lead somewhere, nothing is fetched."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

import weir
from weir.base.errors import InputError
from weir.laboratory import page as built
from weir.laboratory import replay
from weir.scenario.source import read
from weir.scenario.toml import toml

pytest.importorskip("material", reason="mkdocs-material is not installed: `make setup` does it")

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_REFERENCE = re.compile(r"(?:href|src)=\"?([^\"\s>]+)")
_FETCHED = re.compile(r"<(?:script|link|img)\b[^>]*(?:href|src)=\"?(https?:)?//", re.IGNORECASE)
_PICTURE = re.compile(r"^!\[[^\]]+\]\((?P<file>[^)]+)\)", re.MULTILINE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    built = subprocess.run(
        [*command, "--site-dir", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    sources = [path for path in ROOT.glob("docs/**/*.md") if ".site" not in path.parts]
    assert len(sources) >= 25
    for source in sources:
        page = source.relative_to(ROOT / "docs").with_suffix(".html")
        page = page.with_name("index.html") if page.name == "README.html" else page
        assert (site / page).is_file(), f"{source.name} has no page"
    assert (site / "contributing.html").is_file()
    assert (site / "changelog.html").is_file()


def test_every_fence_is_a_block(site: Path) -> None:
    for page in site.glob("**/*.html"):
        assert "```" not in page.read_text(encoding="utf-8"), page.name


def test_links_lead_somewhere_and_nothing_is_fetched(site: Path) -> None:
    looked_at = 0
    for page in site.glob("**/*.html"):
        if page.name == "404.html":  # its links count from the root of a server
            continue
        text = page.read_text(encoding="utf-8")
        assert not _FETCHED.search(text), f"{page.name} fetches something"
        for reference in _REFERENCE.findall(text):
            parts = urlsplit(reference)
            if parts.scheme or parts.netloc or not parts.path:
                continue
            looked_at += 1
            assert (page.parent / unquote(parts.path)).exists(), f"{page.name}: {reference}"
    assert looked_at >= 500


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_search_works_in_a_page_opened_from_a_file(site: Path) -> None:
    page = (site / "index.html").as_uri() + "?q=hystart"
    options = ("--headless", "--no-sandbox", "--virtual-time-budget=8000", "--dump-dom")
    browser = subprocess.run(
        [str(CHROMIUM), *options, page], capture_output=True, text=True, check=True, timeout=60
    )
    (found,) = re.findall(r"md-search-result__meta\">(\d+) matching documents", browser.stdout)
    assert int(found) >= 2


def test_every_version_is_in_the_menu_of_each(site: Path, chromium: Any, tmp_path: Path) -> None:
    for version in ("0.1.0", "0.10.0", "0.9.0"):
        shutil.copytree(site, tmp_path / version)
    (tmp_path / "assets").mkdir()
    subprocess.run([sys.executable, ROOT / "docs/.site/versions.py", tmp_path], check=True)
    served = partial(_Silent, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), served) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        tab = chromium.new_page()
        tab.goto(f"http://127.0.0.1:{server.server_port}/")
        tab.wait_for_url("**/0.10.0/index.html")
        tab.goto(f"http://127.0.0.1:{server.server_port}/0.9.0/concepts.html")
        menu = tab.locator(".md-version")
        menu.wait_for()
        assert menu.locator(".md-version__current").inner_text().strip() == "0.9.0"
        assert menu.locator("a").all_text_contents() == ["0.10.0", "0.9.0", "0.1.0"]
        tab.close()
        server.shutdown()


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def laboratory() -> None:
    try:
        built.read()
    except InputError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("laboratory")
def test_examples_can_be_tried(site: Path) -> None:
    """Those that the page can run, and no others."""
    labels = {
        name: re.findall(r'laboratory/index.html#[^"]*" target="?_blank"?>([^<]*)<', text)
        for name, text in (
            (str(p.relative_to(site)), p.read_text(encoding="utf-8"))
            for p in site.glob("**/*.html")
        )
    }
    assert labels["lab.html"] == ["two-flows from 12 s", "parking-lot from 5 s"]
    assert labels["metrics.html"] == ["reno", "cubic"]
    others = ("worlds/kernel", "stacks/adapters", "stacks/contenders")
    assert [labels[f"{page}.html"] for page in others] == [[], [], []]
    assert len(labels["concepts.html"]) >= 20
    assert sum(map(len, labels.values())) >= 60


@pytest.mark.usefixtures("laboratory")
def test_an_example_shows_the_run_of_its_command(site: Path, chromium: Any, tmp_path: Path) -> None:
    text = (site / "metrics.html").read_text(encoding="utf-8")
    links = re.findall(r'href="(laboratory/index.html#[^"]*)"', text)
    tab = chromium.new_page()
    tab.goto((site / "metrics.html").as_uri())
    results = weir.compare("reno", "cubic", duration="10s", repeat=1, out=tmp_path)
    assert len(links) == 2
    for link, expected in zip(links, results.runs["trace_hash"], strict=True):
        with tab.context.expect_page() as opening:
            tab.locator(f".try-it a[href='{unescape(link)}']").click()
        shown = opening.value
        shown.locator("body[data-state=done]").wait_for()
        assert f"trace hash {expected}" in shown.locator("#facts").text_content()
        shown.close()
    tab.close()


def test_a_link_holds_scenario_seed_and_time() -> None:
    whole = read("two-flows").at({})
    fields = dict(parse_qsl(replay.fragment(whole, "two-flows", 7, 1.5)))
    assert fields == {"text": toml(whole.fields), "seed": "7", "t": "1.5"}


def test_every_picture_of_the_concepts_has_its_command() -> None:
    text = (ROOT / "docs/concepts.md").read_text(encoding="utf-8")
    shown = _PICTURE.findall(text)
    drawn = re.findall(
        r"^<!-- picture: (\S+) is figures/\S+ -->\n!\[[^\n]+\n\n```console\n\$ weir ",
        text,
        re.MULTILINE,
    )
    assert shown
    assert shown == drawn
    assert all((ROOT / "docs" / file).is_file() for file in shown)
