"""What pip installs, what says which version it is, and what only an extra brings."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke

import weir
from weir import _native
from weir.base import extras, version
from weir.base.errors import InputError
from weir.cli import doctor

ROOT = Path(__file__).parents[2]
_INSTALL = re.compile(r"pip install (?P<rest>[^\n`)]*)")
_NAME = re.compile(r"""^['"]?(?P<name>[A-Za-z][\w.-]*)(\[[\w,]+\])?['"]?$""")


def named() -> Iterator[tuple[str, str]]:
    """Every name that a page or a message tells to install, and where."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for path in [*pages, *(ROOT / "python").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]:
        for found in _INSTALL.finditer(path.read_text(encoding="utf-8")):
            for word in found["rest"].split():
                if (name := _NAME.match(word)) and "{" not in word:
                    yield str(path.relative_to(ROOT)), name["name"]


def test_pages_name_our_package_only() -> None:
    found = list(named())
    assert ("docs/worlds/clusters.md", "weir-lab") in found
    assert {name for _, name in found} == {extras.DISTRIBUTION}


def test_the_distribution_is_ours_and_has_each_extra_that_messages_name() -> None:
    asked = set()
    for path in (ROOT / "python").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        asked |= {extra for _, extra in re.findall(r'imported\(("\w+"|\w+), "(\w+)"', text)}
    assert asked == {"dask", "figures", "pandas"}
    assert asked <= set(metadata.metadata(extras.DISTRIBUTION).get_all("Provides-Extra") or [])


def test_the_version_has_the_commit_and_features(invoke: Invoke) -> None:
    printed = invoke("--version").stdout
    assert printed == f"weir {version.described()}\n"
    assert printed.startswith(f"weir {_native.version()}")
    commit, features = _native.build()
    assert all(part in printed for part in [*features, commit or ""])
    assert metadata.version(extras.DISTRIBUTION) == _native.version()


def test_doctor_finds_the_other_weir(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor._package().found == f"weir-lab {_native.version()}"
    monkeypatch.setattr(metadata, "version", lambda name: "3.2" if name == "weir" else "0")
    check = doctor._package()
    assert check.found is None
    assert "weir 3.2 is another program: pip uninstall weir" in check.purpose


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without extras."""
    for name in [name for name in sys.modules if name.partition(".")[0] in BROUGHT]:
        monkeypatch.delitem(sys.modules, name)
    original = builtins.__import__

    class Refuse:
        def find_spec(self, name: str, *_: object) -> None:
            if name in BROUGHT:
                raise ImportError(name)

    monkeypatch.setattr(sys, "meta_path", [Refuse(), *sys.meta_path])
    assert builtins.__import__ is original


BROUGHT = {"distributed", "pandas", "pyarrow", "vl_convert"}


@pytest.mark.usefixtures("bare")
def test_what_an_extra_brings_is_named(tmp_path: Path, invoke: Invoke) -> None:
    case = ("compare", "reno", "--duration", "1s", "--repeat", "2", "--out", str(tmp_path), "-q")
    assert invoke(*case).exit_code == 0
    results = str(tmp_path / "compare" / "latest")
    page = tmp_path / "compare" / "latest" / "report.html"
    drawn: Any = invoke("report", results, "--png")
    assert drawn.exit_code == 2
    assert "vl_convert, which is not installed: pip install 'weir-lab[figures]'" in drawn.output
    assert not page.exists()
    with pytest.raises(InputError, match=r"pip install 'weir-lab\[pandas\]'"):
        weir.load(results).to_pandas("flows")
    spread = invoke(*case, "--dask", "tcp://127.0.0.1:9")
    assert spread.exit_code == 2
    assert "pip install 'weir-lab[dask]'" in spread.output
    shown = weir.load(results).plot("cwnd")._repr_mimebundle_()
    assert list(shown) == ["application/vnd.vegalite.v6+json"]
