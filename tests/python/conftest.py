from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requires
from browser import NAMES
from hypothesis import settings
from typer.testing import CliRunner, Result

from weir.cli import app

SHORT = ("--duration", "1s", "--repeat", "3", "--quiet")
"""Options for a comparison that takes no time."""

Invoke = Callable[..., Result]


# In worker processes of pytest-xdist: readline, which pytest loads, sets it for child processes.
os.environ.pop("COLUMNS", None)
# How long an example takes says how busy the machine is.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
# Tests that run in the background may ignore Ctrl-C, and so would all processes that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _figures_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every figure that a test draws is checked against the schema of its language."""
    if "weir.graphics.figure" in sys.modules:
        # Altair, which has the schema, is only imported where something is drawn.
        from vega import check

        monkeypatch.setattr("weir.graphics.figure.check", check)


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Runs `weir ARGS` in this process, in an empty working directory, without drawing reports."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("weir.cli.plans.draw", lambda results, *_: results.path / "report.html")
    return lambda *args: CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser for the tests of a module, which are skipped where Playwright or it is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"needs Chromium: none of {', '.join(NAMES)} is installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def started(*args: object, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """`weir ARGS` as a process of its own, gone when the test is over."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    command = [sys.executable, "-m", "weir", *map(str, args)]
    with subprocess.Popen(command, text=True, **streams) as process:
        try:
            yield process
        finally:
            process.kill()


PATIENCE_S = 60.0
"""How long a test waits for another process or thread."""


def until(is_so: Callable[[], bool]) -> None:
    """Waits for what another process or thread does; fails the test if it does not."""
    late = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < late, f"it did not happen in {PATIENCE_S:g} s"
        time.sleep(0.01)


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """A port of 127.0.0.1 that no socket of this kind has."""
    with socket.socket(socket.AF_INET, kind) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


REAL_TIME = {
    *("test_bench", "test_bench_udp", "test_book_worlds", "test_capture", "test_cluster"),
    *(
        "test_export",
        "test_flood",
        "test_hosts",
        "test_hosts_agent",
        "test_hostile",
        "test_kernel_cc",
    ),
    *("test_kernel_guest", "test_kernel_netem", "test_kernel_world", "test_kills"),
    *("test_link", "test_markup"),
    *("test_netns", "test_network_api", "test_pathtest"),
    *("test_pathtest_paths", "test_relay", "test_schemas"),
    *("test_seal", "test_tcp", "test_transfer", "test_trees", "test_trust", "test_udp_vs_tcp"),
    *("test_validate_kernel", "test_worlds"),
}
"""Files with tests that depend on the clock, or use the network of the machine.

A guest in virtual time does neither.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that run after all others, and skips those whose guest kernel is missing.

    `make test-python` runs the others in parallel, and `make test-kernel` those in guests.
    """
    for item in items:
        if item.path.stem in REAL_TIME:
            item.add_marker("realtime")
        guest = item.get_closest_marker("guest")
        lacking = requires.lacking_guest(guest) if guest is not None else None
        if lacking is not None:
            item.add_marker(pytest.mark.skip(reason=lacking))
