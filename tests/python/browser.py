"""Pages in headless Chromium, for tests that use what a reader uses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
"""What Chromium is called."""


@contextmanager
def opened(chromium: Any, path: Path, width: int = 1280, **options: Any) -> Iterator[Any]:
    """The page at `path`; the test fails if it reports an error or requests anything."""
    page = chromium.new_page(viewport={"width": width, "height": 900}, **options)
    page.set_default_timeout(10_000)
    errors: list[str] = []
    requests: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.resolve().as_uri())
    yield page
    page.close()
    assert not errors, errors
    others = [url for url in requests[1:] if not url.startswith(("data:", "blob:"))]
    assert not others, others


class Series:
    """A figure over time on a page."""

    def __init__(self, page: Any, name: str) -> None:
        self.page = page
        self.root = page.locator(f"#figure-{name}")
        self._scroll_to(self.root)
        self.root.locator(".u-over").first.wait_for()

    @property
    def panels(self) -> Any:
        """Its diagrams."""
        return self.root.locator(".panel")

    @property
    def titles(self) -> list[str]:
        """The titles of its diagrams."""
        found: list[str] = self.root.locator(".head b").all_text_contents()
        return found

    @property
    def values(self) -> list[str]:
        """What stands next to the names of the lines."""
        found: list[str] = self.root.locator(".values output").all_text_contents()
        return found

    def hover(self, share: float, panel: int = 0) -> None:
        """Moves the mouse to this share of the axis of time."""
        box = self._box(panel)
        self.page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)

    def wheel(self, delta: float, share: float = 0.5) -> None:
        """Turns the wheel over the first diagram."""
        self.hover(share)
        self.page.mouse.wheel(0, delta)
        self.page.wait_for_timeout(100)

    def drag(self, start: float, end: float) -> None:
        """Moves the mouse with its button down."""
        self.hover(start)
        self.page.mouse.down()
        self.hover((start + end) / 2)
        self.hover(end)
        self.page.mouse.up()
        self.page.wait_for_timeout(100)

    def touch(self, steps: Sequence[Sequence[float]], upwards: float = 0) -> None:
        """Fingers at these shares of the axis of time, and `upwards` px higher with each step."""
        session = self.page.context.new_cdp_session(self.page)
        box = self._box(0)
        kinds = ["touchStart", *["touchMove"] * (len(steps) - 1)]
        for number, (kind, shares) in enumerate(zip(kinds, steps, strict=True)):
            y = box["y"] + box["height"] / 2 - number * upwards
            points = [
                {"x": box["x"] + share * box["width"], "y": y, "id": finger}
                for finger, share in enumerate(shares)
            ]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        self.page.wait_for_timeout(100)

    def choose(self, name: str, value: str) -> None:
        """Chooses a value of the selector `name`."""
        self.root.locator(f"select[data-choice='{name}']").select_option(value)

    def at(self, share: float) -> float:
        """The instant under the mouse there, in seconds."""
        self.hover(share)
        return float(self.root.locator(".instant").text_content().removesuffix(" s"))

    @property
    def range(self) -> tuple[float, float]:
        """The first and the last instant that it shows, extrapolated from two of them."""
        left, right = self.at(0.25), self.at(0.75)
        return left - (right - left) / 2, right + (right - left) / 2

    def _box(self, panel: int) -> Any:
        over = self.root.locator(".u-over").nth(panel)
        self._scroll_to(over)
        return over.bounding_box()

    def _scroll_to(self, element: Any) -> None:
        before = self.page.evaluate("scrollY")
        element.scroll_into_view_if_needed()
        if self.page.evaluate("scrollY") != before:
            self.page.wait_for_timeout(300)  # until a wheel no longer scrolls the page


def figures_over_time(page: Any) -> list[str]:
    """The names of the figures over time of a page."""
    found = page.locator("[data-series]").evaluate_all("all => all.map(e => e.dataset.series)")
    return [name.removeprefix("series-") for name in found]


def assert_explorable(figure: Series) -> None:
    """Hover shows values, the wheel zooms all its diagrams, a double click shows everything."""
    figure.hover(0.5)
    assert any(re.search(r"\d", value) for value in figure.values)
    before = figure.range
    figure.wheel(-100)
    left, right = figure.range
    assert before[0] < left < right < before[1]
    figure.drag(0.25, 0.75)
    inner = figure.range
    assert left < inner[0] < inner[1] < right
    figure.root.locator(".u-over").first.dblclick()
    figure.page.wait_for_timeout(100)
    assert figure.range == pytest.approx(before, abs=0.05 * (before[1] - before[0]))
