"""`weir read` names the limit of twelve scenarios, from captures at the sender (`-rA`: shares)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from weir import _native, reading

_FILE = Path(__file__).with_name("read_limits.toml")
_LIST = tomllib.loads(_FILE.read_text(encoding="utf-8"))
_CASES: list[dict[str, Any]] = _LIST["case"]


def _parameter(case: dict[str, Any]) -> Any:
    marks = [pytest.mark.xfail(reason=case["known"], strict=True)] if "known" in case else []
    return pytest.param(case, id=case["name"], marks=marks)


@pytest.mark.parametrize("case", [_parameter(case) for case in _CASES])
def test_the_configured_limit_takes_the_largest_share(case: dict[str, Any], tmp_path: Path) -> None:
    scenario = _native.Scenario.parse(_LIST["base"], list(case["set"].items()), str(_FILE))
    scenario.record(1, tmp_path, "run")
    found = reading.read(sorted(tmp_path.glob("*senders.pcapng"))).connections
    for row in found.iter_rows(named=True):
        print(case["name"], reading.limits(row))
    assert found.height >= 1
    assert set(found["limit"]) == {case["limit"]}, found
