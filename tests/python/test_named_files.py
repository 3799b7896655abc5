"""Files that scenarios and options name: regular, of bounded size, never quoted in errors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Invoke

from weir import _native

PRIVATE = "root:$6$salt$hash:20000:0:99999:7:::"

DUMBBELL = ("[topology.forward]\n", "rate_trace")
GRAPH = (
    'stack = "reno"\nfrom = "a"\nto = "b"\n[topology]\nkind = "graph"\n'
    '[[topology.link]]\nfrom = "a"\nto = "b"\n[topology.link.impair]\n',
    "rate_trace",
)
RADIO = '[topology]\nkind = "radio"\n[topology.radio]\n'
KEYS: dict[str, tuple[str, str]] = {
    "rate trace": DUMBBELL,
    "rate trace of a link": GRAPH,
    "places": (f'{RADIO}placement = "points"\n', "points"),
    "movements": (f'{RADIO}mobility = "trace"\n', "trace"),
    "places that are not used": (RADIO, "points"),
    "movements elsewhere": ("[topology.radio]\n", "trace"),
    "sizes": ('workload.kind = "flow-sizes"\n', "workload.sizes"),
}
"""Every key of a scenario that takes a file's name, after the text that it stands in."""

CONTENTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "endless": (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
    "folder": (Path.mkdir, "not a regular file"),
    "too long": (lambda path: path.write_bytes(b"0" * ((16 << 20) + 1)), "16777216 bytes"),
    "too many lines": (lambda path: path.write_bytes(b"1\n" * 2_000_001), "2000000 lines"),
    "gone": (lambda path: path.unlink(missing_ok=True), "cannot be read"),
}


def scenario(key: str, file: Path) -> str:
    before, name = KEYS[key]
    head = "[[flow]]\n" if before.startswith(("stack", "workload")) else "[[flow]]\nstack='reno'\n"
    return f'{head}{before}{name} = "{file}"\n'


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("key", KEYS)
def test_what_a_scenario_names_is_a_regular_file_of_bounded_size(
    key: str, content: str, tmp_path: Path
) -> None:
    file = tmp_path / "named"
    make, message = CONTENTS[content]
    make(file)
    with pytest.raises(_native.ScenarioError, match=message) as refused:
        _native.Scenario.parse(scenario(key, file), [], "test.toml")
    assert str(file) in str(refused.value)
    assert KEYS[key][1] in str(refused.value)


@pytest.mark.parametrize("key", KEYS)
def test_no_text_of_a_named_file_is_printed(key: str, tmp_path: Path) -> None:
    """Otherwise a foreign scenario would print files that only the user may read."""
    file = tmp_path / "shadow"
    file.write_text(f"{PRIVATE}\n{PRIVATE}\n", encoding="utf-8")
    try:
        output = str(_native.Scenario.parse(scenario(key, file), [], "test.toml").fields())
    except _native.ScenarioError as error:
        output = str(error)
    for part in PRIVATE.split("$"):
        assert len(part) == 1 or part not in output


def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    program = (
        "import sys, weir._native as native\n"
        "for text in sys.argv[1:]:\n"
        "    try: native.Scenario.parse(text, [], 'test.toml')\n"
        "    except native.ScenarioError as error: print(error)\n"
    )
    texts = [scenario(key, fifo) for key in KEYS]
    (tmp_path / "fifo.py").symlink_to(fifo)
    script = f"[[flow]]\nstack = '{fifo}.py:Mine'\n"
    command = [sys.executable, "-c", program, *texts, script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(texts) + 1
    for line in lines:
        assert "not a regular file" in line


@pytest.mark.parametrize(
    "command", [("compare", "reno"), ("relay", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9")]
)
def test_options_name_files_under_the_same_limits(
    command: tuple[str, ...], invoke: Invoke, tmp_path: Path
) -> None:
    options = ("--set", "topology.forward.rate_trace=/dev/zero")
    if command[0] == "relay":
        options = ("--up", "rate_trace=/dev/zero")
    done = invoke(*command, *options)
    assert done.exit_code == 2, done.output
    assert done.stderr.count("\n") == 1
    assert "'/dev/zero' is not a regular file" in done.stderr
    secret = tmp_path / "shadow"
    secret.write_text(PRIVATE, encoding="utf-8")
    done = invoke(*command, options[0], options[1].replace("/dev/zero", str(secret)))
    assert done.exit_code == 2, done.output
    assert "line 1: not a time" in done.stderr
    assert "salt" not in done.output
