"""The command `python -m bench.trees`: a folder through `weir send`, with kills at both ends.

The folder has small files, links, empty folders, a socket, and one long file that is mostly a hole.
Sender and receiver are killed (SIGKILL) in turn, each when another share of the files has arrived,
and started again with the same command. The command checks that what arrives has the same contents,
permissions, times and links, that the hole is one again, and that no file is sent again that was
there when the last sender started.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from bench import command
from bench.kills import Program, free_port

_MODES = (0o644, 0o600, 0o755, 0o444)
_FIRST_S = 1_500_000_000
"""The first file's time of modification: July 2017."""
_ENDS_WITHIN_S = 300.0


@dataclass(frozen=True, slots=True)
class Shape:
    """What is in the folder."""

    files: int = 20_000
    largest: int = 9_000
    sparse: int = 4 << 30
    """Length of the file that is mostly a hole."""
    kills: int = 2
    """Of each end."""
    seed: int = 1


_USUAL = Shape()


@dataclass(slots=True)
class Outcome:
    """What became of it."""

    files: int
    bytes: int
    seconds: float = 0.0
    killed: list[str] = field(default_factory=list)
    already: int = 0
    """Files that the last sender found there."""
    sent_bytes: int = 0
    """Of the last sender."""
    occupied_bytes: int = 0
    """What the file with the hole takes of the disk, where it has arrived."""
    problems: list[str] = field(default_factory=list)


def make(root: Path, shape: Shape) -> int:
    """Makes the folder; returns how many bytes its files have, but for the hole."""
    rng, total = random.Random(shape.seed), 0  # noqa: S311
    for n in range(shape.files):
        folder = root / f"d{n % 17}" / f"e{n % 5}"
        folder.mkdir(parents=True, exist_ok=True)
        content = rng.randbytes(rng.randrange(shape.largest))
        total += len(content)
        file = folder / f"f{n}.bin"
        file.write_bytes(content)
        file.chmod(rng.choice(_MODES))
        os.utime(file, ns=(0, (_FIRST_S + n) * 10**9 + 123_456_789))
        if n % 50 == 0:
            (folder / f"link{n}").symlink_to(f"../e{n % 5}/f{n}.bin")
    (root / ".hidden").write_text("a name that begins with a dot")
    (root / "same").write_bytes(b"")
    (root / "d0" / "same").write_bytes(b"")
    (root / "nowhere").symlink_to("d0/no such file")
    with (root / "sparse.img").open("wb") as sparse:
        sparse.truncate(shape.sparse)
        for at in (shape.sparse // 3, shape.sparse - 100_000):
            sparse.seek(at)
            sparse.write(rng.randbytes(50_000))
            total += 50_000
    for n in range(10):
        (root / "empty" / f"in{n}").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "socket"))
    (root / "empty").chmod(0o555)
    folders = (path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())
    for folder in sorted(folders, reverse=True):
        os.utime(folder, ns=(0, (_FIRST_S - 1) * 10**9))
    os.utime(root, ns=(0, _FIRST_S * 10**9))
    return total


def entries(root: Path) -> dict[str, tuple[Any, ...]]:
    """Permissions, times and targets of what is in a folder, and sizes of files, by path."""
    found: dict[str, tuple[Any, ...]] = {}
    for path in (root, *_below(root)):
        there = path.lstat()
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = ("link", there.st_mtime_ns, str(path.readlink()))
        elif path.is_dir():
            found[name] = ("folder", there.st_mtime_ns, there.st_mode)
        elif path.is_file():
            found[name] = ("file", there.st_mtime_ns, there.st_mode, there.st_size)
    return found


def _below(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        for name in (*folders, *names):
            yield Path(folder) / name


def run(shape: Shape, folder: Path) -> Outcome:
    """Makes the folder, sends it with kills, and compares."""
    (source := folder / "tree").mkdir()
    outcome = Outcome(shape.files, make(source, shape))
    port = free_port()
    receive = ("recv", "--dir", folder / "in", "--bind", port)
    send = ("send", f"{source}/", port, "--json", "--max-wait", "20s")
    receiver = Program(*receive)
    receiver.wait_until_it_listens()
    began = time.monotonic()
    sender = Program(*send)
    try:
        for n in range(2 * shape.kills):
            _wait_for(folder / "in", shape.files * (n + 1) // (2 * shape.kills + 1), sender)
            if sender.process.poll() is not None:
                break
            victim, program = (("receiver", receiver), ("sender", sender))[n % 2]
            program.kill()
            outcome.killed.append(victim)
            program.again()
            if victim == "receiver":
                receiver.wait_until_it_listens()
        _finish(sender, outcome)
        outcome.seconds = time.monotonic() - began
    finally:
        sender.kill()
        receiver.kill()
    _compare(source, folder / "in" / "tree", shape, outcome)
    return outcome


def _wait_for(folder: Path, count: int, sender: Program) -> None:
    """Waits until that many files have arrived, or the sender has ended."""
    ends = time.monotonic() + _ENDS_WITHIN_S
    while time.monotonic() < ends and sender.process.poll() is None:
        if sum(not path.name.startswith(".weir-") for path in _below(folder)) >= count:
            return
        time.sleep(0.02)


def _finish(sender: Program, outcome: Outcome) -> None:
    try:
        stdout, stderr = sender.process.communicate(timeout=_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        outcome.problems.append(f"the sender has not ended within {_ENDS_WITHIN_S:.0f} s")
        return
    if sender.process.returncode != 0:
        outcome.problems.append(f"the sender fails: {stderr.strip()[-400:]}")
    if stdout:
        said = json.loads(stdout)
        files = [row for row in said["rows"] if row["kind"] == "file"]
        outcome.already = sum(row["verdict"] == "already" for row in files)
        outcome.sent_bytes = said["session"]["sent_bytes"]
        unwanted = [item for item in said["session"]["skipped"] if item["missing"]]
        outcome.problems += [f"not sent: {item}" for item in unwanted]


def _compare(source: Path, arrived: Path, shape: Shape, outcome: Outcome) -> None:
    wanted, there = entries(source), entries(arrived)
    for name in sorted(wanted.keys() | there.keys()):
        if wanted.get(name) != there.get(name):
            outcome.problems.append(f"{name}: {wanted.get(name)} is {there.get(name)}")
    ignored = ("--exclude", "socket")
    contents = subprocess.run(
        ["diff", "-r", "--no-dereference", "--brief", *ignored, source, arrived],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    outcome.problems += contents.stdout.splitlines() + contents.stderr.splitlines()
    outcome.occupied_bytes = (arrived / "sparse.img").stat().st_blocks * 512
    if outcome.occupied_bytes > shape.sparse // 8:
        outcome.problems.append(f"sparse.img takes {outcome.occupied_bytes} bytes of the disk")
    if outcome.already and outcome.sent_bytes > outcome.bytes:
        outcome.problems.append(
            f"the last sender sent {outcome.sent_bytes} of {outcome.bytes} bytes again"
        )


def trees(
    files: Annotated[int, typer.Option(help="Small files.", min=10)] = _USUAL.files,
    sparse: Annotated[
        int, typer.Option(help="Length of the file with a hole, in MiB.", min=16)
    ] = _USUAL.sparse >> 20,
    kills: Annotated[int, typer.Option(help="Kills of each end.", min=0)] = _USUAL.kills,
    json_lines: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Sends a folder while both ends are killed, and compares what arrives."""
    shape = Shape(files=files, sparse=sparse << 20, kills=kills)
    with tempfile.TemporaryDirectory(prefix="weir-trees-") as folder:
        outcome = run(shape, Path(folder))
    if json_lines:
        print(json.dumps(asdict(outcome)))
    else:
        rate = outcome.files / outcome.seconds if outcome.seconds else 0.0
        print(f"{outcome.files} files, {outcome.bytes} bytes without holes")
        print(f"{outcome.seconds:.1f} s ({rate:.0f} files/s), killed: {', '.join(outcome.killed)}")
        print(f"the last sender found {outcome.already} files and sent {outcome.sent_bytes} bytes")
        print(f"the file with a hole takes {outcome.occupied_bytes} bytes of the disk")
        print("\n".join(outcome.problems[:40]) or "holds")
    sys.exit(1 if outcome.problems else 0)


if __name__ == "__main__":
    command.run(trees, "bench.trees")
