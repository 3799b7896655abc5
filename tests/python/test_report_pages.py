"""The report of a validation in headless Chromium: hover, zoom, axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser import Series, assert_explorable, figures_over_time, opened

from weir.api import reports
from weir.validation import validate

TRUTH = Path(__file__).parents[1] / "truth"


@pytest.fixture(scope="module")
def validation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cases = ("10m-q34-reno", "10m-q34-vegas")
    out = tmp_path_factory.mktemp("validation")
    ran = validate(TRUTH, cases=cases, out=out, show_progress=False)
    return reports.write(ran.results)


def test_a_validation_shows_both_over_time(chromium: Any, validation: Path) -> None:
    with opened(chromium, validation) as page:
        names = figures_over_time(page)
        assert len(names) == 2
        for name in names:
            figure = Series(page, name)
            labels = figure.root.locator(".values").first.text_content()
            assert "Linux" in labels
            assert_explorable(figure)
        # A case has its own time, which no other follows.
        one, other = (Series(page, name) for name in names)
        whole = other.range
        one.wheel(-100)
        assert other.range == pytest.approx(whole, abs=0.1)
