"""Files that the user names: how long they may be, and what is said of those that are refused."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weir.base import bounded
from weir.base.errors import InputError

MOST = 100
READERS: dict[str, Callable[[Path], Any]] = {
    "bytes": bounded.read_bytes,
    "text": bounded.read_text,
    "JSON": bounded.read_json,
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_BYTES", MOST)


@pytest.mark.parametrize("kind", READERS)
def test_files_up_to_the_limit_are_read_whole(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"1" * MOST)
    whole = READERS[kind](file)
    assert whole in (b"1" * MOST, "1" * MOST, int("1" * MOST))
    file.write_bytes(b"1" * (MOST + 1))
    with pytest.raises(InputError, match=f"file: longer than {MOST} bytes"):
        READERS[kind](file)


def test_what_is_packed_is_bounded_too(tmp_path: Path) -> None:
    file = tmp_path / "file.gz"
    file.write_bytes(gzip.compress(b"1" * MOST))
    assert bounded.read_gzip(file) == b"1" * MOST
    file.write_bytes(gzip.compress(b"1" * (MOST + 1)))
    with pytest.raises(InputError, match=f"longer than {MOST} bytes"):
        bounded.read_gzip(file)
    file.write_bytes(gzip.compress(b"1" * MOST)[:-4])
    with pytest.raises(InputError, match="not gzip: "):
        bounded.read_gzip(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * MOST, "not JSON: "),
        (b"{", "not JSON: "),
        (b"NaN", "not JSON: NaN is no number of JSON"),
    ],
)
def test_what_is_no_json(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        bounded.read_json(file)


def test_json_that_is_nested_too_deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_BYTES", 1 << 20)
    file = tmp_path / "file"
    file.write_bytes(b"[" * 200_000)
    with pytest.raises(InputError, match="not JSON: nested too deep"):
        bounded.read_json(file)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none: no such file"):
        bounded.read_bytes(tmp_path / "none")
    with pytest.raises(InputError, match=r"none: No such file or directory"):
        bounded.read_text(tmp_path / "none")
    with pytest.raises(InputError, match="not a regular file"):
        bounded.read_bytes(tmp_path)
    (tmp_path / "latin").write_bytes(b"\xff")
    with pytest.raises(InputError, match="latin: not a text file in UTF-8"):
        bounded.read_text(tmp_path / "latin")


def test_a_pipe_is_read_as_text_and_in_no_other_way(tmp_path: Path) -> None:
    """As `<(COMMAND)` of a shell."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(InputError, match="not a regular file"):
        bounded.read_bytes(fifo)
    writer = threading.Thread(target=fifo.write_text, args=("a text",))
    writer.start()
    assert bounded.read_text(fifo) == "a text"
    writer.join()
