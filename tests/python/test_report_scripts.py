"""The scripts of a report are bundled once per version of the converter."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.report import scripts


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was bundled, in an empty cache directory."""
    calls: list[str] = []

    def bundle(snippet: str) -> str:
        calls.append(snippet)
        return f"bundled({len(calls)})"

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("vl_convert.javascript_bundle", bundle)
    return calls


def read() -> str:
    """As a new process reads them."""
    scripts.vega.cache_clear()
    try:
        return scripts.vega()
    finally:
        scripts.vega.cache_clear()


def test_they_are_bundled_once(bundled: list[str], tmp_path: Path) -> None:
    assert [read(), read()] == ["bundled(1)"] * 2
    assert len(bundled) == 1
    (file,) = (tmp_path / "weir").iterdir()
    assert file.name.startswith("vega-")
    file.unlink()
    assert read() == "bundled(2)"


def test_a_cache_that_cannot_be_written_is_done_without(bundled: list[str], tmp_path: Path) -> None:
    (tmp_path / "weir").write_text("in the way")
    assert [read(), read()] == ["bundled(1)", "bundled(2)"]
    assert len(bundled) == 2
