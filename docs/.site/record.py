"""Records the laboratory for the README: `python docs/.site/record.py`, after `make lab`.

Chromium shows the page at times that are 30 ms of the run apart, while two flows fill the queue for
the first time. Pillow, which nothing else here needs, joins the screenshots.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "web/dist/index.html"
PICTURE = ROOT / "docs/images/laboratory.webp"

_RUN = "stack=cubic&stack=bbr&rate_mbps=2&rtt_ms=200&queue_bdp=1&duration_s=12&seed=1"
_FIRST_S, _STEP_S, _FRAMES = 0.4, 0.03, 70
_FRAME_MS = 100
_SIZE = {"width": 1280, "height": 1000}
_WIDTH, _HEIGHT = 960, 750
_QUALITY = 60
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def record() -> None:
    """Writes the picture."""
    try:
        from PIL import Image
    except ImportError:
        sys.exit("recording needs the Python package Pillow")
    if not PAGE.is_file():
        sys.exit(f"there is no {PAGE.relative_to(ROOT)}: make lab builds it")
    shots = [Image.open(io.BytesIO(shot)).convert("RGB") for shot in _screenshots()]
    frames = [shot.resize((_WIDTH, _HEIGHT), Image.Resampling.LANCZOS) for shot in shots]
    first, *others = frames
    first.save(
        PICTURE,
        save_all=True,
        append_images=others,
        duration=_FRAME_MS,
        loop=0,
        quality=_QUALITY,
        method=6,
    )
    print(
        f"{PICTURE.relative_to(ROOT)}: {len(frames)} frames, {PICTURE.stat().st_size / 1e6:.2f} MB"
    )


def _screenshots() -> list[bytes]:
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, _BROWSERS)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport=_SIZE, color_scheme="light")
        page.goto(f"{PAGE.as_uri()}#{_RUN}&t={_FIRST_S}")
        page.wait_for_function('() => document.body.dataset.state === "done"')
        shots = []
        for number in range(_FRAMES):
            page.locator("#scrub").fill(f"{_FIRST_S + number * _STEP_S:.4f}")
            # One frame to draw, one to be sure that it is on the screen.
            page.evaluate("new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))")
            shots.append(page.screenshot())
        browser.close()
    return shots


if __name__ == "__main__":
    record()
