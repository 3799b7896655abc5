"""`weir conform` with packet scripts: those of this repository hold, failures are reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Invoke

from weir.base.errors import InputError
from weir.guest import script_files

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "tests" / "packetdrill"
HANDSHAKE = """
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0 > S. 0:0(0) ack 1 <...>
+.1 < . 1:1(0) ack 1 win 257
+0 accept(3, ..., ...) = 4
"""


def test_the_scripts_of_this_repository_hold(invoke: Invoke) -> None:
    result = invoke("conform", SCRIPTS, "--json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert len(rows) == len(list(SCRIPTS.rglob("*.pkt"))) > 5
    assert {row["verdict"] for row in rows} <= {"pass", "known", "skip"}


def test_a_failure_shows_both_packets(invoke: Invoke) -> None:
    file = Path("wrong.pkt")  # a longer name breaks the line
    file.write_text(f"{HANDSHAKE}+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 2\n")
    result = invoke("conform", file)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].endswith("live packet field tcp_ack: expected: 2 vs actual: 1")
    assert lines[0].startswith(f"fail {file}:10: ")
    assert [line.partition(" packet: ")[0] for line in lines[1:3]] == ["script", "actual"]
    assert lines[-1] == "1 script: 1 fail"


def test_a_stack_replaces_that_of_the_script(invoke: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "window.pkt"
    write = (
        "+0 write(4, ..., 2000) = 2000\n+0 > . 1:1001(1000) ack 1\n+0 > P. 1001:2001(1000) ack 1\n"
    )
    file.write_text(HANDSHAKE + write)
    assert invoke("conform", file).exit_code == 0
    assert invoke("conform", file, "--stack", "stop-and-wait/none").exit_code == 1
    wrong = invoke("conform", file, "--stack", "rack/cubik")
    assert wrong.exit_code == 2
    assert "cubik" in wrong.stderr


def test_a_known_failure_that_passes_is_a_failure(invoke: Invoke) -> None:
    file = Path("known.pkt")  # a longer name breaks the line
    write = "+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack {}\n"
    head = "# known: sim: a reason\n"
    file.write_text(head + HANDSHAKE + write.format(2))
    result = invoke("conform", file)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, f"known {file}: a reason")
    file.write_text(head + HANDSHAKE + write.format(1))
    result = invoke("conform", file)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (1, f"unexpected {file}: a reason")
    file.write_text("# skip: sim: another\n" + HANDSHAKE + write.format(2))
    assert invoke("conform", file, "--quiet").stdout.splitlines() == ["1 script: 1 skip"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("0 splice(3, 4) = 0", ":1: splice: this call is not supported"),
        ("\n0 > X 1:1(0)", ":2: flags = 'X', allowed are"),
        (b"\xff", ": not a text file in UTF-8"),
    ],
)
def test_what_is_no_script_is_refused(
    invoke: Invoke, tmp_path: Path, text: str | bytes, part: str
) -> None:
    file = tmp_path / "bad.pkt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    result = invoke("conform", file)
    assert result.exit_code == 2
    assert f"{file}{part}" in result.stderr.replace("\n", "")
    missing = invoke("conform", tmp_path / "none.pkt")
    assert (missing.exit_code, "No such file" in missing.stderr) == (2, True)


def test_a_folder_without_scripts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no scripts"):
        script_files.read([tmp_path])


def test_scripts_and_suites_do_not_mix(invoke: Invoke) -> None:
    refused = invoke("conform", SCRIPTS, "cubic")
    assert refused.exit_code == 2
    assert "cubic: name suites, or files and folders of scripts, not both" in refused.stderr
    refused = invoke("conform", SCRIPTS, "--repeat", 3)
    assert refused.exit_code == 2
    assert "--repeat 3 has no effect on packet scripts" in refused.stderr


def test_scripts_that_are_not_understood_are_counted(invoke: Invoke, tmp_path: Path) -> None:
    """A suite of others: by folder, how many run and hold, and what is missing."""
    for name, rest in [
        ("a/good.pkt", "+0 write(4, ..., 1000) = 1000\n"),
        ("a/wrong.pkt", "+0 read(4, ..., 9) = 0\n"),
        ("b/other.pkt", "+0 splice(4, 0, 5, 0, 9, 0) = 9\n"),
    ]:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(HANDSHAKE + rest)
    assert invoke("conform", tmp_path).exit_code == 2
    result = invoke("conform", tmp_path, "--keep-going", "--json")
    assert result.exit_code == 1
    verdicts = [row["verdict"] for row in json.loads(result.stdout)["rows"]]
    assert verdicts == ["pass", "fail", "refused"]
    shown = invoke("conform", tmp_path, "--keep-going").stdout.splitlines()
    assert shown[-1] == "3 scripts: 1 pass, 1 fail, 1 refused"
    rows = [line.split()[-4:] for line in shown if line.strip().startswith("all ")]
    assert len(rows) == 1
    assert "splice" in "".join(shown)
    assert invoke("conform", tmp_path / "b", "--keep-going").exit_code == 0
    assert "name files or folders" in invoke("conform", "bbr", "--keep-going").stderr
