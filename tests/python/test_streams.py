"""What a terminal of another locale, or a closed one, does to the output: no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMPARE = ("compare", "reno", "--duration", "1s", "--repeat", "2", "--quiet", "--no-report")


def weir(
    *words: str, redirect: str = "", encoding: str = "utf-8"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirect}', "sh", sys.executable, "-m", "weir", *words],  # noqa: S607
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        text=True,
        encoding=encoding,
    )


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", "+-"), ("latin-1", "±")])
def test_what_an_encoding_lacks_is_replaced(encoding: str, shown: str, tmp_path: Path) -> None:
    done = weir(*COMPARE, "--out", str(tmp_path), encoding=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert f" {shown} " in done.stdout
    assert weir("list", "controllers", encoding=encoding).returncode == 0


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_done_without(closed: str) -> None:
    done = weir("list", "queues", redirect=closed)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_is_an_error_of_one_line() -> None:
    done = weir("list", "queues", redirect=">/dev/full")
    assert (done.returncode, done.stderr) == (1, "weir: No space left on device\n")
