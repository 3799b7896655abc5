"""What the documents tell readers to type works, and what they link to exists.

A fenced block marked `console` holds commands after `$ ` and, below them, their output. Commands
of Weir run here at the smallest size, next to the files that blocks with `title="…"` hold.
`WEIR_BLESS=1 pytest tests/python/test_docs.py` runs the commands of blocks with `lines=N` as they
stand, in about a minute, and rewrites the output shown; it also rewrites docs/catalogue.md.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import figures
import pytest
import requires
from conftest import Invoke
from figures import FIGURES, Figure
from typer.testing import CliRunner

import weir
from weir import _native
from weir.cli import app
from weir.processes import netns
from weir.studies import catalogue

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("fuzz/*.md"),
        *ROOT.glob("crates/*/*.md"),
        *ROOT.glob("adapters/*/*.md"),
    ]
)

_FENCE = re.compile(r"^```console(?P<options>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(
    r'^```(?:python|text|toml) title="(?P<name>[\w.-]+)"\n(?P<text>.*?)^```$', re.M | re.S
)
_LINK = re.compile(r"(?<!`)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")
CATALOGUE = ROOT / "docs/catalogue.md"
MOST_PAGES = 25
"""Directly in `docs`, and in the first two levels of the site's navigation."""
_BEGIN = "<!-- catalogue: written by a test from `weir list` -->\n"
_END = "<!-- end of catalogue -->\n"
_TINY = {
    "compare": ("--duration", "1s", "--repeat", "2", "--quiet"),
    "run": ("--repeat", "1", "--quiet"),
}
"""What makes a verb's experiment small, as further options."""
_BEFORE: dict[str, list[tuple[str, ...]]] = {
    "report": [(), ("--out", "before"), ("--out", "after")],
    "export": [()],
    "bundle": [()],
    "cite": [()],
    "diff": [("--out", "before"), ("--out", "after")],
    "read": [("--pcap", "captures")],
}
"""What a verb needs before: comparisons with these options."""
_TESTED_ELSEWHERE = {
    *("study", "conform", "validate", "relay", "link"),
    *("send", "recv", "test", "ui"),
    *("tune", "explain", "search"),
}
"""Verbs whose commands take long or have two sides."""
_CHANGE_THE_MACHINE = [["stack", what] for what in ("kernel", "contender", "bpf", "remove")]
_ALONE = {"--save", "--new-key"}
"""Options with which a verb of two sides has one."""
_OTHER_MACHINES = {"--virtual", "--dask", "--hosts"}
"""Options of guests, clusters and runs between hosts."""
_SHORT = ("--set", "measure.duration=12s", "--set", "measure.warmup=0s")
"""A scenario's minute in real time, cut down to where its last flow has begun."""


@dataclass(frozen=True)
class Command:
    """One line after `$ ` in a document."""

    document: Path
    line: str

    @property
    def words(self) -> list[str]:
        """The command's words, without a redirection at its end."""
        return shlex.split(self.line.split(" > ")[0], comments=True)

    @property
    def real_time(self) -> bool:
        """Whether it runs a world with a real clock."""
        return bool({"udp", "kernel", "bpf"} & set(self.words))

    @property
    def has_other_tests(self) -> bool:
        """Whether what it does is tested elsewhere: it takes long, or more than one process."""
        words = self.words[1:]
        return (
            (bool(_TESTED_ELSEWHERE & set(words[:1])) and not _ALONE & set(words))
            or words[:2] in _CHANGE_THE_MACHINE
            or bool(_OTHER_MACHINES & set(words))
            or any("/test/latest" in word for word in words)
        )

    def __str__(self) -> str:
        return f"{self.document.name}: {self.line}"


def write_files(document: Path) -> None:
    """Writes the files that a document shows with their names. Two folders are the repository's."""
    for name in ("python", "tests"):
        Path(name).symlink_to(ROOT / name)
    for file in _FILE.finditer(document.read_text(encoding="utf-8")):
        Path(file["name"]).write_text(file["text"], encoding="utf-8")


def _commands() -> list[Command]:
    return [
        Command(document, line.removeprefix("$ "))
        for document in DOCUMENTS
        for fence in _FENCE.finditer(document.read_text(encoding="utf-8"))
        for line in fence["body"].splitlines()
        if line.startswith("$ ")
    ]


COMMANDS = _commands()
_FIRST = {c.line: c for c in reversed(COMMANDS) if c.words[0] == "weir"}
OURS = [
    pytest.param(command, marks=pytest.mark.realtime if command.real_time else ())
    for command in reversed(_FIRST.values())
    if not command.has_other_tests
]
"""Each once, where it stands first, without those that have tests of their own."""
OTHERS = [command for command in COMMANDS if command.words[0] != "weir"]
WITH_OUTPUT = [
    document
    for document in DOCUMENTS
    if re.search(r"^```console lines=\d+$", document.read_text(encoding="utf-8"), re.MULTILINE)
]
"""Documents that show what their commands print."""


def test_the_documents_have_commands_and_links() -> None:
    assert len(DOCUMENTS) >= 8
    assert len([c for c in COMMANDS if (c.words[0], c.document.name) == ("weir", "README.md")]) >= 5
    assert any(command.words[0] == "make" for command in OTHERS)
    assert sum(len(_links(document)) for document in DOCUMENTS) >= 20
    assert len(OURS) >= 50


@pytest.mark.parametrize("command", OURS, ids=str)
def test_a_command_works(command: Command, invoke: Invoke) -> None:
    _, *words = command.words
    write_files(command.document)
    for options in _BEFORE.get(words[0], []):
        assert invoke("compare", "reno", "cubic", *_TINY["compare"], *options).exit_code == 0
    if words[:2] == ["bundle", "--check"]:
        assert invoke("bundle", "results/compare/latest", "--out", words[2]).exit_code == 0
    short = _SHORT if words[0] == "run" and "kernel" in words else ()
    result = invoke(*words, *_TINY.get(words[0], ()), *short)
    requires.foreign_stacks(result.output)
    if result.exit_code == 2 and "run make lab" in " ".join(result.output.split()):
        pytest.skip("the laboratory was not built; `make lab` builds it")
    assert result.exit_code == 0, result.output
    assert result.output


@pytest.mark.parametrize("command", OTHERS, ids=str)
def test_other_commands_name_what_exists(command: Command) -> None:
    words = [word for word in command.words if not re.match(r"[A-Z_]+=", word)]
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
        assert words[1:], "a bare make only prints the list"
        assert set(words[1:]) <= targets
    elif words[0] == "cargo":
        package = words[words.index("-p") + 1]
        assert (ROOT / "crates" / package.removeprefix("weir-") / "Cargo.toml").is_file()
    else:
        known = {"git", "cd", "source", "dask", "pip", ".venv/bin/weir", ".venv/bin/pytest"}
        assert words[0] in known, f"what is {words[0]}?"


def test_a_shell_can_read_every_command(invoke: Invoke) -> None:
    results = ("study", "validate", "list", "diff", "report", "export")
    real = ("send", "recv", "relay", "link", "test", "ui")
    verbs = ("compare", "run", *results, *real)
    helps = "\n".join(invoke(verb, "--help").output for verb in verbs)
    examples = re.findall(r"^ +(weir .+?) *$", helps, re.MULTILINE)
    assert len(examples) >= 10
    for line in [*examples, *(command.line for command in COMMANDS)]:
        shell = subprocess.run(["sh", "-n", "-c", line], capture_output=True, check=False)  # noqa: S607
        assert shell.returncode == 0, line


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in _links(document):
        path, _, anchor = target.partition("#")
        other = (document.parent / path).resolve() if path else document
        assert other.exists(), f"{document.name} links to {target}"
        if anchor and other.suffix == ".md":
            assert anchor in _anchors(other), f"{document.name} links to {target}"


@pytest.mark.realtime
@pytest.mark.parametrize("page", ["docs/python.md", "docs/getting-started.md"])
def test_the_python_of_a_page_works(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        small = re.sub(r"repeat=\d+", "repeat=2", block)
        small = re.sub(r'"\d+s"', '"1s"', small)
        if re.search(r"weir\.(compare|run)\(", block):
            assert small != block, "an example states its repeats"
        if "requires root" in block and netns.missing() is not None:
            continue
        exec(compile(small, page, "exec"), {"weir": weir})  # noqa: S102


def test_the_catalogue_lists_what_there_is() -> None:
    _, rest = CATALOGUE.read_text(encoding="utf-8").split(_BEGIN)
    listed, _ = rest.split(_END)
    assert listed == _catalogue(), "WEIR_BLESS=1 pytest tests/python/test_docs.py rewrites it"


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_a_figure_is_the_same_in_all_its_places(figure: Figure) -> None:
    assert figure.wrong() == [], "WEIR_BLESS=1 pytest tests/python/test_docs.py -k figure writes it"


@pytest.mark.skipif("WEIR_BLESS" not in os.environ, reason="rewrites documents")
def test_bless_the_figures() -> None:
    figures.write()


@pytest.mark.parametrize(
    ("page", "pattern"),
    [
        ("README.md", r"(\d+)\s+recorded kernel runs"),
        ("docs/validation/README.md", r"(\d+)\s+recordings, of Linux"),
        ("tests/truth/README.md", r"Recordings of (\d+) runs"),
    ],
)
def test_the_number_of_recorded_runs_is_that_of_their_summary(page: str, pattern: str) -> None:
    recorded = len(json.loads((ROOT / "tests/truth/summary.json").read_text(encoding="utf-8")))
    assert re.findall(pattern, (ROOT / page).read_text(encoding="utf-8")) == [str(recorded)]


def test_the_map_is_short_and_complete() -> None:
    top = sorted((ROOT / "docs").glob("*.md"))
    assert len(top) <= MOST_PAGES
    index = ROOT / "docs/README.md"
    listed = {(index.parent / link.partition("#")[0]).resolve() for link in _links(index)}
    pages = set((ROOT / "docs").glob("**/*.md")) - {index}
    assert {page for page in pages if page.parent.name != "studies"} <= listed
    _, navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")
    assert 10 <= len(re.findall(r"^(?: {2}| {6})- ", navigation, re.MULTILINE)) <= MOST_PAGES


def test_contributing_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", text, re.MULTILINE)
    first = [f"crates/{crate}/src/{name}" for crate, cell in rows for name in _CODE.findall(cell)]
    named = [name for name in _CODE.findall(text) if re.fullmatch(r"(crates|python)/[\w./]+", name)]
    assert min(len(first), len(named)) >= 12
    assert [name for name in first + named if not (ROOT / name).exists()] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 130


def test_every_study_has_a_page_with_its_picture_and_a_line() -> None:
    index = (ROOT / "docs/studies/README.md").read_text(encoding="utf-8")
    for name in catalogue.studies():
        page = (ROOT / f"docs/studies/{name}.md").read_text(encoding="utf-8")
        drawn = re.search(
            rf"^<!-- picture: (\S+) is figures/\S+ -->\n!\[[^]]+\]\(\1\)\n\n"
            rf"```console[^\n]*\n\$ weir study {name}\n",
            page,
            re.MULTILINE,
        )
        assert drawn, f"docs/studies/{name}.md has no picture that `weir study {name}` draws"
        assert f"| [`{name}`]({name}.md) |" in index


@pytest.mark.skipif("WEIR_BLESS" not in os.environ, reason="rewrites documents")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("document", WITH_OUTPUT, ids=lambda path: str(path.relative_to(ROOT)))
def test_bless_the_output_in_the_documents(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(document)
    text = document.read_text(encoding="utf-8")
    document.write_text(_FENCE.sub(_with_output, text), encoding="utf-8")


@pytest.mark.skipif("WEIR_BLESS" not in os.environ, reason="rewrites a document")
def test_bless_the_catalogue() -> None:
    before, rest = CATALOGUE.read_text(encoding="utf-8").split(_BEGIN)
    after = rest.split(_END)[1]
    text = "".join((before, _BEGIN, _catalogue(), _END, after))
    CATALOGUE.write_text(text, encoding="utf-8")


def _catalogue() -> str:
    """A table of each kind that a scenario may name."""
    kinds: dict[str, list[dict[str, str]]] = _native.catalogue()
    tables = (
        "\n".join(
            (
                f"\n## {kind.replace('_', ' ').capitalize()}\n",
                "| name | description | parameters |",
                "|---|---|---|",
                *(_catalogue_row(item) for item in items),
                "",
            )
        )
        for kind, items in kinds.items()
    )
    return "".join(tables) + "\n"


def _catalogue_row(item: dict[str, str]) -> str:
    parameters = item["parameters"].replace("|", "\\|")
    shown = f"`{parameters}`" if parameters and "`" not in parameters else parameters
    return f"| `{item['name']}` | {item['description']} | {shown} |"


def _with_output(fence: re.Match[str]) -> str:
    """The block with what its commands print, cut to the number of lines that it allows."""
    lines: list[str] = []
    limit = re.search(r"lines=(\d+)", fence["options"])
    commands = [line for line in fence["body"].splitlines() if line.startswith("$ ")]
    for line in commands:
        words = Command(ROOT, line.removeprefix("$ ")).words
        lines.append(line)
        if words[0] != "weir" or limit is None:
            continue
        output = CliRunner().invoke(app, [*words[1:], "--quiet"]).stdout
        shown = [line.rstrip() for line in output.splitlines() if line.strip()]
        most = int(limit[1])
        lines += shown[:most] + (["…"] if len(shown) > most else [])
    return "```console" + fence["options"] + "\n" + "\n".join(lines) + "\n```"


def _links(document: Path) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
    targets = [match["target"] for match in _LINK.finditer(text)]
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def _anchors(document: Path) -> set[str]:
    """The anchors of the headings, as the usual renderers make them."""
    headings = _HEADING.findall(document.read_text(encoding="utf-8"))
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}
