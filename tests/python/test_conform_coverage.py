"""The cases that the reference table lists: each is in a suite, or missing with a reason.

`WEIR_BLESS=1 pytest tests/python/test_conform_coverage.py` rewrites the list in docs/conform.md.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from weir.conform.cases import suites
from weir.guest import script_files

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conform.md"
TABLE = tomllib.loads(Path(__file__).with_name("conform_cases.toml").read_text(encoding="utf-8"))
_BEGIN = "<!-- coverage: written by test_conform_coverage.py -->\n"
_END = "<!-- end of coverage -->\n"
_TEST = re.compile(r"`(\w+)`")
_FILE = re.compile(r"crates/[\w/]+\.rs")


def _implemented() -> set[str]:
    """The ids in suites, and in the heads of packet scripts. `N2-1bdp` and `C2-reno` are N2, C2."""
    ids = {case.id.partition("-")[0] for suite in suites.suites().values() for case in suite.cases}
    scripts = script_files.read([ROOT / "tests" / "packetdrill"])
    return ids | {case for script in scripts for case in script.script.cases}


def test_every_case_of_the_table_is_in_a_suite_or_missing_with_a_reason() -> None:
    listed, missing = set(TABLE["source"]), TABLE["missing"]
    assert len(listed) == 121
    assert listed - _implemented() == set(missing)
    assert all(missing.values())


def test_the_unit_tests_that_have_missing_cases_exist() -> None:
    named = 0
    for reason in TABLE["missing"].values():
        code = "".join((ROOT / file).read_text(encoding="utf-8") for file in _FILE.findall(reason))
        for name in _TEST.findall(reason):
            assert f"fn {name}()" in code, name
            named += 1
    assert named >= 4


def _coverage() -> str:
    source, missing = TABLE["source"], TABLE["missing"]
    count = f"{len(source) - len(missing)} of the {len(source)} cases are in the suites."
    lines = [f"| {case} | {source[case]} | {reason} |" for case, reason in missing.items()]
    head = ["| missing | source | reason |", "|---|---|---|"]
    return "\n".join(["", count, "", *head, *lines, "", ""])


def test_the_page_lists_the_missing_cases() -> None:
    _, rest = PAGE.read_text(encoding="utf-8").split(_BEGIN)
    listed, _ = rest.split(_END)
    assert listed == _coverage(), "WEIR_BLESS=1 pytest tests/python/test_conform_coverage.py"


@pytest.mark.skipif("WEIR_BLESS" not in os.environ, reason="rewrites a document")
def test_bless_the_coverage() -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(_BEGIN)
    _, after = rest.split(_END)
    PAGE.write_text("".join((before, _BEGIN, _coverage(), _END, after)), encoding="utf-8")
