"""A headless Chromium for benchmarks of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weir.base.errors import InputError

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def tab() -> Iterator[Any]:
    """Yields a page of 1280 by 900 pixels, of Playwright.

    Raises:
        InputError: Playwright or a browser is missing.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise InputError("needs Playwright: make setup") from None
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        raise InputError(f"needs a browser: one of {', '.join(_PROGRAMS)}")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1280, "height": 900})
        browser.close()
